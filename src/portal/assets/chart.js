import { drawChart } from '../../browser/chart.js'
import { el } from './dom.js'

const DAY_MS = 86_400_000

const number = new Intl.NumberFormat()
const dayAndMonth = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** A bar a day, live and test calls on each other; and the same as a table. `usage` is by day and mode. */
export function dayChart({ from, to, total, usage }) {
  const days = daysOf(from, to).map((day) => {
    const of = (mode) => usage.find((line) => line.day === day && line.mode === mode)?.calls ?? 0
    return { day, live: of('live'), test: of('test') }
  })
  const words = `${number.format(total)} calls from ${dateWords(from)} to ${dateWords(to)} (UTC)`
  const picture = el('div', { class: 'chart', role: 'img', 'aria-label': words })
  drawChart(picture, {
    at: days.map(({ day }) => Date.parse(day) / 1_000),
    isBars: true,
    isStacked: true,
    format: (calls) => (calls === null || calls === undefined ? '–' : number.format(calls)),
    formatTime: (second) => dayAndMonth.format(new Date(second * 1_000)),
    series: [
      { label: 'Test', color: '--edge', values: days.map(({ test }) => test) },
      { label: 'Live', color: '--accent', values: days.map(({ live }) => live) },
    ],
  })
  const filled = days.filter(({ live, test }) => live + test > 0)
  return el('figure', {}, picture, el('figcaption', { class: 'small' }, words), filled.length > 0 && asTable(filled))
}

/** Calls by a name, the most first, each with its share as a bar. */
export function shareTable(label, lines) {
  if (lines.length === 0) return el('p', { class: 'empty' }, 'No calls in this time.')
  const most = Math.max(...lines.map(({ calls }) => calls))
  return el(
    'table',
    { class: 'shares' },
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, label), el('th', { scope: 'col' }, 'Calls'))),
    el(
      'tbody',
      {},
      ...lines
        .toSorted((a, b) => b.calls - a.calls)
        .map(({ name, calls }) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, name),
            el(
              'td',
              {},
              el('span', { class: 'count' }, number.format(calls)),
              el('progress', { max: most, value: calls, 'aria-hidden': 'true' }),
            ),
          ),
        ),
    ),
  )
}

function daysOf(from, to) {
  const days = []
  for (let time = Date.parse(from); time <= Date.parse(to); time += DAY_MS)
    days.push(new Date(time).toISOString().slice(0, 10))
  return days
}

const dateWords = (day) => dayAndMonth.format(new Date(day))

function asTable(days) {
  return el(
    'details',
    {},
    el('summary', {}, 'As a table'),
    el(
      'table',
      {},
      el('thead', {}, el('tr', {}, ...['Day (UTC)', 'Live', 'Test'].map((name) => el('th', { scope: 'col' }, name)))),
      el(
        'tbody',
        {},
        ...days.map(({ day, live, test }) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, dateWords(day)),
            el('td', {}, number.format(live)),
            el('td', {}, number.format(test)),
          ),
        ),
      ),
    ),
  )
}
