import { numberWords } from '../catalog/limit-words.ts'
import type { CapRow, HealthRow, UpstreamRow } from '../fleet/snapshot.ts'
import { causeWords, clockTime, percent, span, stateOf } from '../fleet/words.js'
import { type Html, html, trusted } from '../pages/html.ts'
import { pill } from './browser/parts.js'
import { bars, SPARK_HEIGHT, sparkline } from './browser/rows.js'

const UNKNOWN = html`<small>unknown</small>`
const WINDOWS: Record<number, string> = { 60: 'minute', 3600: 'hour', 86400: 'day' }

/** Everything known about an API, by name. The overview shows one line of it. */
export function apiFacts(row: UpstreamRow, at: number): [name: string, value: Html][] {
  return [
    ['Health', health(row, at)],
    ['Queue', queue(row)],
    ['Cap left', cap(row)],
    ['Traffic', traffic(row)],
  ]
}

function health(row: UpstreamRow, at: number): Html {
  const { enabled, isSwitchedOff, health: state, cap } = row
  if (!enabled) return html`${pillOf('Disabled')}<small>${isSwitchedOff ? 'switched off' : 'needs a key'}</small>`
  if (state === null) return html`${pillOf('Unknown')}<small>Redis does not answer</small>`
  const isLimited = stateOf(row) === 'Limited'
  const limit = isLimited && html`<small>limited by its source until ${clockTime(cap?.limitedUntil ?? at)} UTC</small>`
  if (state.checkedAt === null) {
    // A rate limit says nothing about the health of the source, but callers meet it.
    const known = state.lastFailure ? `last attempt: ${state.lastFailure.words}` : 'not checked yet'
    return html`${pillOf(isLimited ? 'Limited' : 'Unchecked')}${limit}<small>${known}</small>`
  }
  const last = state.lastFailure ? `last attempt: ${state.lastFailure.words}` : 'the last attempt succeeded'
  const outcome = (state.status !== 'Healthy' || isLimited) && html`<small>${last}</small>`
  return html`${pillOf(isLimited ? 'Limited' : state.status)} <span class="of"><b class="score">${state.score}</b> of 100</span>${limit}${outcome}<small>${sinceText(state, at)}checked ${span(Math.max(0, at - state.checkedAt))} ago</small>`
}

function sinceText({ status, since, cause }: HealthRow, at: number): Html | string {
  return since === null
    ? ''
    : html`${status} for ${span(Math.max(0, at - since))} · ${causeWords({ cause, to: status })}<br>`
}

function queue({ queue: state, paused }: UpstreamRow): Html {
  const isPaused =
    paused !== null && html`${pillOf('Paused')}<small>${paused === 'refuse' ? 'refuses calls' : 'holds calls'}</small>`
  if (state === null) return html`${isPaused}${UNKNOWN}`
  const oldest = state.waiting > 0 ? `oldest ${span(state.oldestMs)}` : 'nothing waits'
  return html`${isPaused}<b>${state.waiting}</b> waiting, <b>${state.active}</b> under way<small>${oldest}</small>`
}

function cap({ cap: state, slug, hour }: UpstreamRow): Html {
  if (!state) return UNKNOWN
  const rates = state.rates.map(({ max, seconds, left }) => {
    const label = `${numberWords(left)} of ${numberWords(max)} left per ${WINDOWS[seconds] ?? span(seconds * 1_000)}`
    return html`<span class="rate"><progress max="${max}" value="${left}" aria-label="${slug}: ${label}"></progress>${label}</span>`
  })
  const next = state.limitedUntil
    ? 'limited by its source'
    : state.nextSlotMs > 0
      ? `next slot in ${span(state.nextSlotMs)}`
      : 'free now'
  return html`${rates}<small>${state.underWay} of ${state.concurrency} connections · ${next}</small>${capUse(slug, state, hour)}`
}

function traffic(row: UpstreamRow): Html {
  const { recent } = row
  if (recent === null) return UNKNOWN
  const { answered, refused, failed, upstreamP95, lastMinute } = recent
  const perMinute = Object.values(lastMinute).reduce((sum, count) => sum + count, 0)
  const all = answered + refused + failed
  const hour = trusted(sparkline(row))
  if (all === 0) return html`<b>0</b>/min<small>no calls in 5 min</small>${hour}`
  const share = failed > 0 ? html`<b class="bad">${percent(failed / all)} failing</b>` : 'none failing'
  const callers = refused > 0 ? ` · ${percent(refused / all)} refused (4xx)` : ''
  const p95 = upstreamP95 === null ? '' : `p95 ${span(upstreamP95)}`
  const details = [p95, `${all} in 5 min${callers}`].filter(Boolean).join(' · ')
  return html`<b>${perMinute}</b>/min, ${share}<small>${details}</small>${hour}`
}

/**
 * The share of the cap that each minute of the last hour used: requests to the upstream, divided by
 * what the tightest rate allows in a minute on average. A line marks the whole cap.
 */
function capUse(slug: string, { rates }: CapRow, hour: UpstreamRow['hour']): Html | false {
  if (hour === null || rates.length === 0) return false
  const perMinute = Math.min(...rates.map(({ max, seconds }) => (max * 60) / seconds))
  const most = Math.max(...hour.sent)
  if (most === 0) return false
  const label = `${slug}, cap used in the last hour: ${percent(Math.min(1, most / perMinute))} at most in a minute`
  return html`<svg class="spark use" viewBox="0 -1 120 ${SPARK_HEIGHT + 1}" role="img" aria-label="${label}"><path d="${bars(hour.sent, perMinute)}"></path><path class="whole" d="M0 -0.5h120"></path></svg>`
}

const pillOf = (state: string): Html => trusted(pill(state))
