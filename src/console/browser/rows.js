import { escapeHtml } from '../../browser/html.js'
import { causeWords, clockTime, percent, span, stateOf } from '../../fleet/words.js'
import { pill } from './parts.js'

const UNKNOWN = '<small>unknown</small>'

/**
 * What the row of an API shows: the HTML of each cell.
 *
 * @param {import('../../fleet/snapshot.ts').UpstreamRow} row
 * @param {number} at when the row was read
 */
export function rowCells(row, at) {
  return {
    health: health(row, at),
    queue: queue(row),
    cap: cap(row),
    traffic: traffic(row),
    actions: actions(row),
  }
}

/** The words by which a row is found, and the chips it belongs to. */
export function rowTags({ enabled, isSwitchedOff, health, paused, queue, cap, recent }) {
  const isFailing = (recent?.failed ?? 0) > 0
  return {
    down: enabled && health?.status === 'Down',
    degraded: enabled && health?.status === 'Degraded',
    failing: isFailing,
    limited: enabled && Boolean(cap?.limitedUntil),
    capped: (cap?.nextSlotMs ?? 0) > 1_000 && cap.rates.some(({ left }) => left === 0),
    waiting: (queue?.waiting ?? 0) > 0,
    paused: paused !== null && !isSwitchedOff,
    disabled: !enabled,
  }
}

/**
 * Whether a row says nothing that anybody needs: the API is well, and nobody has called it for five
 * minutes.
 *
 * @param {import('../../fleet/snapshot.ts').UpstreamRow} row
 */
export function isIdle(row) {
  const { recent } = row
  const calls = recent === null ? 1 : recent.answered + recent.refused + recent.failed
  return calls === 0 && !Object.values(rowTags(row)).some(Boolean)
}

/**
 * Rows with trouble first, the gravest before; the others by name.
 *
 * @param {import('../../fleet/snapshot.ts').UpstreamRow[]} rows
 */
export function byTrouble(rows) {
  return [...rows].sort((a, b) => troubleOf(b) - troubleOf(a) || a.slug.localeCompare(b.slug))
}

function troubleOf(row) {
  const tags = rowTags(row)
  const weights = { down: 64, paused: 32, limited: 24, degraded: 16, failing: 8, capped: 4, waiting: 2 }
  const sum = Object.entries(weights).reduce((total, [tag, weight]) => total + (tags[tag] ? weight : 0), 0)
  return row.enabled ? sum : sum - 1
}

function health(row, at) {
  const { enabled, isSwitchedOff, health: state, cap } = row
  if (!enabled) return `${pill('Disabled')}<small>${isSwitchedOff ? 'switched off' : 'needs a key'}</small>`
  if (state === null) return `${pill('Unknown')}<small>Redis does not answer</small>`
  const isLimited = stateOf(row) === 'Limited'
  const limit = isLimited ? `<small>limited by its source until ${clockTime(cap.limitedUntil)} UTC</small>` : ''
  if (state.checkedAt === null)
    return `${pill(isLimited ? 'Limited' : 'Unchecked')}${limit}<small>not checked yet</small>`
  const age = state.since === null ? '' : `for ${span(Math.max(0, at - state.since))}`
  const since =
    age && `${state.status} ${age} · ${escapeHtml(causeWords({ cause: state.cause, to: state.status }))}<br>`
  const last = state.lastFailure ? `last attempt: ${state.lastFailure.words}` : 'the last attempt succeeded'
  const outcome = state.status === 'Healthy' && !isLimited ? '' : `<small>${escapeHtml(last)}</small>`
  const checked = `checked ${span(Math.max(0, at - state.checkedAt))} ago`
  return `${pill(isLimited ? 'Limited' : state.status)} <span class="of"><b class="score">${state.score}</b> of 100</span>${limit}${outcome}<small>${since}${checked}</small>`
}

function queue({ queue: state, paused }) {
  const pausedPill =
    paused === null ? '' : `${pill('Paused')}<small>${paused === 'refuse' ? 'refuses calls' : 'holds calls'}</small>`
  if (state === null) return pausedPill + UNKNOWN
  const oldest = state.waiting > 0 ? `oldest ${span(state.oldestMs)}` : 'nothing waits'
  return `${pausedPill}<b>${state.waiting}</b> waiting, <b>${state.active}</b> under way<small>${oldest}</small>`
}

function cap({ cap: state, slug, hour }) {
  if (!state) return UNKNOWN
  const rates = state.rates.map(({ max, seconds, left }) => {
    const window = { 60: 'minute', 3600: 'hour', 86400: 'day' }[seconds] ?? span(seconds * 1_000)
    const label = `${left} of ${max} left per ${window}`
    return `<span class="rate"><progress max="${max}" value="${left}" aria-label="${escapeHtml(slug)}: ${label}"></progress>${label}</span>`
  })
  const next = state.limitedUntil
    ? 'limited by its source'
    : state.nextSlotMs > 0
      ? `next slot in ${span(state.nextSlotMs)}`
      : 'free now'
  return `${rates.join('')}<small>${state.underWay} of ${state.concurrency} connections · ${next}</small>${capUse(slug, state, hour)}`
}

function traffic({ slug, recent, hour }) {
  if (recent === null) return UNKNOWN
  const { answered, refused, failed, upstreamP95, lastMinute } = recent
  const perMinute = Object.values(lastMinute).reduce((sum, count) => sum + count, 0)
  const all = answered + refused + failed
  if (all === 0) return `<b>0</b>/min<small>no calls in 5 min</small>${sparkline(slug, hour)}`
  const share = failed > 0 ? `<b class="bad">${percent(failed / all)} failing</b>` : 'none failing'
  const callers = refused > 0 ? ` · ${percent(refused / all)} refused (4xx)` : ''
  const p95 = upstreamP95 === null ? '' : `p95 ${span(upstreamP95)}`
  return `<b>${perMinute}</b>/min, ${share}<small>${[p95, `${all} in 5 min${callers}`].filter(Boolean).join(' · ')}</small>${sparkline(slug, hour)}`
}

const SPARK_HEIGHT = 16

/** A bar for each minute as the path of an SVG; `most` has the whole height. */
function bars(values, most) {
  return values
    .map((value, minute) => {
      const height = value === 0 ? 0 : Math.max(1, Math.round((Math.min(value, most) / most) * SPARK_HEIGHT))
      return height === 0 ? '' : `M${minute * 2} ${SPARK_HEIGHT}v-${height}h1.4v${height}z`
    })
    .join('')
}

/**
 * The part of the cap that each minute of the last hour used: calls that reached the upstream, as a
 * part of what the tightest rate allows in a minute on average. A line marks the whole.
 */
function capUse(slug, { rates }, hour) {
  if (hour === null || rates.length === 0) return ''
  const perMinute = Math.min(...rates.map(({ max, seconds }) => (max * 60) / seconds))
  const most = Math.max(...hour.sent)
  if (most === 0) return ''
  const label = `${escapeHtml(slug)}, cap used in the last hour: ${percent(Math.min(1, most / perMinute))} at most in a minute`
  return `<svg class="spark use" viewBox="0 -1 120 ${SPARK_HEIGHT + 1}" role="img" aria-label="${label}"><path d="${bars(hour.sent, perMinute)}"></path><path class="whole" d="M0 -0.5h120"></path></svg>`
}

/** The calls of the last hour, a bar for each minute with its failures in red. */
function sparkline(slug, hour) {
  if (hour === null) return ''
  const most = Math.max(1, ...hour.calls)
  const failed = hour.failed.reduce((sum, count) => sum + count, 0)
  const label = `${escapeHtml(slug)}, calls of the last hour: ${most} a minute at most, ${failed} failed`
  return `<svg class="spark" viewBox="0 0 120 ${SPARK_HEIGHT}" role="img" aria-label="${label}"><path d="${bars(hour.calls, most)}"></path><path class="bad" d="${bars(hour.failed, most)}"></path></svg>`
}

function actions({ slug, paused, enabled }) {
  const button = (action, text) =>
    `<button type="button" data-action="${action}" data-slug="${escapeHtml(slug)}" aria-label="${text} ${escapeHtml(slug)}">${text}</button>`
  return [
    paused === null ? button('pause', 'Pause') : button('resume', 'Resume'),
    button('probe', 'Probe'),
    enabled ? button('disable', 'Disable') : button('enable', 'Enable'),
  ].join('')
}
