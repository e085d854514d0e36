import { drawChart } from '../../browser/chart.js'
import { el, svg } from './dom.js'
import { callsOf } from './words.js'

const DAY_MS = 86_400_000

const number = new Intl.NumberFormat()
const dayAndMonth = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** Days of a month, by which the plan's monthly calls are divided for the line. */
const MONTH_DAYS = 30

/**
 * If the plan's line is this many times above the fullest day, it is left out, because all bars
 * would be flat.
 */
const LINE_TIMES_MAX = 4

/** The outcomes of calls, in the order of the stack; the last is the lowest. */
const OUTCOMES = [
  ['test', 'Test', '--edge'],
  ['failed', 'Failed (5xx)', '--bad'],
  ['refused', 'Refused (4xx)', '--fair'],
  ['answered', 'Answered', '--good'],
]

/** Usage counts a call as answered if its status is below 400. */
export const outcomeOfStatus = (status) => (status < 400 ? 'answered' : status < 500 ? 'refused' : 'failed')

const outcomeOf = ({ mode, status }) => (mode === 'test' ? 'test' : outcomeOfStatus(status))

/** Sums up the calls of some lines of usage, by outcome. */
export function sumsOf(lines) {
  const sums = { test: 0, failed: 0, refused: 0, answered: 0 }
  for (const line of lines) sums[outcomeOf(line)] += line.calls
  return sums
}

/** @param {Record<string, number>} sums */
const callsIn = ({ test, failed, refused, answered }) => test + failed + refused + answered

/**
 * A chart with a bar for each day: live calls by outcome, and test calls. A table shows the same.
 * The line is the plan's month divided by its days. `usage` is by day, mode and status; `perMonth`
 * is the monthly limit of the plan.
 */
export function dayChart({ from, to, total, usage }, perMonth) {
  const days = daysOf(from, to).map((day) => ({ day, ...sumsOf(usage.filter((line) => line.day === day)) }))
  const most = Math.max(0, ...days.map(callsIn))
  const perDay = perMonth / MONTH_DAYS
  const hasLine = perDay <= most * LINE_TIMES_MAX
  const plan = `the plan has ${number.format(perMonth)} a month, about ${number.format(Math.round(perDay))} a day`
  const words = `${callsOf(total)} from ${dateWords(from)} to ${dateWords(to)} (UTC); ${plan}`
  const picture = el('div', { class: 'chart', role: 'img', 'aria-label': words })
  drawChart(picture, {
    at: days.map(({ day }) => Date.parse(day) / 1_000),
    isBars: true,
    isStacked: true,
    format: (calls) => (calls === null || calls === undefined ? '–' : number.format(Math.round(calls))),
    formatTime: (second) => dayAndMonth.format(new Date(second * 1_000)),
    series: OUTCOMES.map(([name, label, color]) => ({ label, color, values: days.map((sums) => sums[name]) })),
    ...(hasLine ? { line: { label: 'Plan, a day', color: '--ink', value: perDay } } : {}),
  })
  const filled = days.filter((sums) => OUTCOMES.some(([name]) => sums[name] > 0))
  return el('figure', {}, picture, el('figcaption', { class: 'small' }, words), filled.length > 0 && asTable(filled))
}

/** Calls by name, the most first: a bar of their outcomes, and the same in words. */
export function shareTable(label, lines) {
  if (lines.length === 0) return el('p', { class: 'empty' }, 'No calls in this time.')
  const most = Math.max(...lines.map(callsIn))
  return el(
    'table',
    { class: 'shares' },
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, label), el('th', { scope: 'col' }, 'Calls'))),
    el(
      'tbody',
      {},
      ...lines
        .toSorted((a, b) => callsIn(b) - callsIn(a))
        .map(({ name, ...sums }) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, name),
            el(
              'td',
              {},
              el('span', { class: 'count' }, number.format(callsIn(sums))),
              el('span', { class: 'small' }, `: ${outcomeWords(sums)}`),
              outcomeBar(sums, most),
            ),
          ),
        ),
    ),
  )
}

/** `12 answered, 3 failed (5xx)`. */
function outcomeWords(sums) {
  const parts = COLUMNS.filter(([name]) => sums[name] > 0)
  return parts.map(([name, label]) => `${number.format(sums[name])} ${label.toLowerCase()}`).join(', ')
}

/** The bar is hidden from screen readers, because the words beside it say the same. */
function outcomeBar(sums, most) {
  let x = 0
  const parts = COLUMNS.map(([name]) => {
    const part = svg('rect', { class: name, x, width: sums[name], height: 1 })
    x += sums[name]
    return part
  })
  const members = { viewBox: `0 0 ${most} 1`, preserveAspectRatio: 'none', class: 'outcomes', 'aria-hidden': 'true' }
  return svg('svg', members, ...parts)
}

function daysOf(from, to) {
  const days = []
  for (let time = Date.parse(from); time <= Date.parse(to); time += DAY_MS)
    days.push(new Date(time).toISOString().slice(0, 10))
  return days
}

const dateWords = (day) => dayAndMonth.format(new Date(day))

const COLUMNS = OUTCOMES.toReversed()

function asTable(days) {
  return el(
    'details',
    {},
    el('summary', {}, 'As a table'),
    el(
      'table',
      {},
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          ...['Day (UTC)', ...COLUMNS.map(([, label]) => label)].map((name) => el('th', { scope: 'col' }, name)),
        ),
      ),
      el(
        'tbody',
        {},
        ...days.map((sums) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, dateWords(sums.day)),
            ...COLUMNS.map(([name]) => el('td', {}, number.format(sums[name]))),
          ),
        ),
      ),
    ),
  )
}
