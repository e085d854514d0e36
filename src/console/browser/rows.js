import { escapeHtml } from '../../browser/html.js'
import { briefSpan, clockTime, percent, span, stateOf } from '../../fleet/words.js'
import { pill } from './parts.js'

/** The content of a cell whose value is unknown. An unknown value is never shown as zero. */
const UNKNOWN = '<span class="unknown">?</span>'

/** What the time in a cell means. On wide screens a note below the table says it. */
const word = (text) => `<span class="word">${text}</span>`

/** A value that is hidden on phones. */
const none = (text) => `<span class="none">${text}</span>`

/**
 * Columns of a table of APIs: the name of the cell, its heading and its style. Narrow screens hide
 * `extra` columns.
 *
 * @type {Record<string, { head: string, look?: 'number' | 'extra' }>}
 */
export const COLUMNS = {
  state: { head: 'State' },
  calls: { head: 'Calls', look: 'number' },
  failed: { head: 'Failed', look: 'number' },
  p95: { head: 'p95', look: 'number' },
  cap: { head: 'Cap used' },
  waiting: { head: 'Waiting', look: 'number' },
  active: { head: 'Under way', look: 'number' },
  jobs: { head: 'Other jobs' },
  hour: { head: 'Last hour', look: 'extra' },
}

/** What the overview shows of each API. */
export const OVERVIEW_COLUMNS = ['state', 'calls', 'failed', 'p95', 'cap', 'waiting', 'active', 'hour']

/**
 * The cells of an API's row as HTML, in one line. Longer texts are on the API's own page.
 *
 * @param {import('../../fleet/snapshot.ts').UpstreamRow} row
 * @param {number} at when the row was read
 * @returns {Record<string, string>}
 */
export function rowCells(row, at) {
  return {
    state: `${pill(stateOf(row))}${stateDetail(row, at)}`,
    ...traffic(row),
    cap: capUsed(row),
    ...queue(row),
    hour: sparkline(row),
  }
}

/** The words with which a row can be found, and the chips to which it belongs. */
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
 * Sorts rows: first rows with problems, the gravest first; then by calls, then by name.
 *
 * @param {import('../../fleet/snapshot.ts').UpstreamRow[]} rows
 */
export function byTrouble(rows) {
  return [...rows].sort(
    (a, b) => troubleOf(b) - troubleOf(a) || callsOf(b.recent) - callsOf(a.recent) || a.slug.localeCompare(b.slug),
  )
}

function troubleOf(row) {
  const tags = rowTags(row)
  const weights = { down: 64, paused: 32, limited: 24, degraded: 16, failing: 8, capped: 4, waiting: 2 }
  const sum = Object.entries(weights).reduce((total, [tag, weight]) => total + (tags[tag] ? weight : 0), 0)
  return row.enabled ? sum : sum - 1
}

/** Calls of the last five minutes. */
function callsOf(recent) {
  return recent === null ? 0 : recent.answered + recent.refused + recent.failed
}

function stateDetail(row, at) {
  const { isSwitchedOff, paused, health, cap } = row
  const detail = {
    Disabled: isSwitchedOff ? 'switched off' : 'needs a key',
    Paused: paused === 'refuse' ? 'refuses calls' : 'holds calls',
    Limited: cap?.limitedUntil && `until ${clockTime(cap.limitedUntil)}`,
    Degraded: health && [`${health.score} of 100`, sinceOf(health, at)].filter(Boolean).join(' · '),
    Down: health && sinceOf(health, at),
  }[stateOf(row)]
  return detail ? ` <small>${detail}</small>` : ''
}

const sinceOf = ({ since }, at) => (since === null ? '' : briefSpan(Math.max(0, at - since)))

function traffic({ recent }) {
  if (recent === null) return { calls: UNKNOWN, failed: UNKNOWN, p95: UNKNOWN }
  const { failed, upstreamP95 } = recent
  const all = callsOf(recent)
  return {
    calls: count(all),
    failed: failed > 0 ? `<b class="bad">${failed}</b> <small>${percent(failed / all)}</small>` : none('0'),
    p95: upstreamP95 === null ? none('–') : span(upstreamP95),
  }
}

const count = (number) => (number === 0 ? none('0') : `<b>${number}</b>`)

/** The used share of the fullest rate, or of the connections if their share is larger. */
function capUsed({ slug, cap }) {
  if (!cap) return UNKNOWN
  const { rates, underWay, concurrency, nextSlotMs } = cap
  const used = Math.max(underWay / concurrency, ...rates.map(({ max, left }) => (max - left) / max))
  const bar = `<progress max="1" value="${used.toFixed(3)}" aria-label="${escapeHtml(slug)}: part of the cap that is used"></progress>`
  const words = `${bar} ${Math.round(used * 100)} %`
  if (used < 0.005) return none(words)
  return nextSlotMs > 1_000 ? `${words} <small>${word('next in')} ${briefSpan(nextSlotMs)}</small>` : words
}

function queue({ queue: state }) {
  if (state === null) return { waiting: UNKNOWN, active: UNKNOWN, jobs: UNKNOWN }
  const { waiting, active, delayed, failed, oldestMs } = state
  const crashed = failed > 0 ? ` <b class="bad">${failed} ended by a defect</b>` : ''
  return {
    waiting: waiting > 0 ? `${count(waiting)} <small>${word('oldest')} ${briefSpan(oldestMs)}</small>` : count(0),
    active: count(active),
    jobs: `${delayed} scheduled${crashed}`,
  }
}

/** Height of the highest bar, in units of the SVG. */
export const SPARK_HEIGHT = 16

/**
 * A bar for each minute, as the path of an SVG. A bar with the value `most` has the full height.
 *
 * @param {number[]} values
 * @param {number} most
 */
export function bars(values, most) {
  return values
    .map((value, minute) => {
      const height = value === 0 ? 0 : Math.max(1, Math.round((Math.min(value, most) / most) * SPARK_HEIGHT))
      return height === 0 ? '' : `M${minute * 2} ${SPARK_HEIGHT}v-${height}h1.4v${height}z`
    })
    .join('')
}

/**
 * The calls of the last hour, a bar for each minute with its failures in red.
 *
 * @param {Pick<import('../../fleet/snapshot.ts').UpstreamRow, 'slug' | 'hour'>} row
 */
export function sparkline({ slug, hour }) {
  if (hour === null) return ''
  const most = Math.max(1, ...hour.calls)
  const failed = hour.failed.reduce((sum, number) => sum + number, 0)
  const label = `${escapeHtml(slug)}, calls of the last hour: ${most} a minute at most, ${failed} failed`
  return `<svg class="spark" viewBox="0 0 120 ${SPARK_HEIGHT}" role="img" aria-label="${label}"><path d="${bars(hour.calls, most)}"></path><path class="bad" d="${bars(hour.failed, most)}"></path></svg>`
}
