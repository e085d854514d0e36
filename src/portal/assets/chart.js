import { el, svg } from './dom.js'

const WIDTH = 720
const HEIGHT = 200
/** Room for the numbers on the left, the dates below, and the highest number above. */
const LEFT = 52
const BOTTOM = 24
const TOP = 12
const DAY_MS = 86_400_000

const number = new Intl.NumberFormat()
const dayAndMonth = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** A bar a day, live and test calls on each other, with axes; and the same as a table. `usage` is by day and mode. */
export function dayChart({ from, to, total, usage }) {
  const days = daysOf(from, to).map((day) => {
    const of = (mode) => usage.find((line) => line.day === day && line.mode === mode)?.calls ?? 0
    return { day, live: of('live'), test: of('test') }
  })
  const highest = niceCeiling(Math.max(4, ...days.map(({ live, test }) => live + test)))
  const words = `${number.format(total)} calls from ${dateWords(from)} to ${dateWords(to)} (UTC)`
  const picture = svg(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'chart', role: 'img', 'aria-label': words },
    ...gridLines(highest),
    ...days.flatMap((values, index) => bar(values, { index, count: days.length, highest })),
    ...dateLabels(days),
  )
  const filled = days.filter(({ live, test }) => live + test > 0)
  return el(
    'figure',
    {},
    picture,
    el(
      'figcaption',
      { class: 'small legend' },
      el('span', { class: 'live' }, 'Live'),
      el('span', { class: 'test' }, 'Test'),
      ` ${words}`,
    ),
    filled.length > 0 && asTable(filled),
  )
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
              svg(
                'svg',
                { viewBox: '0 0 100 8', class: 'share', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
                svg('rect', { x: 0, y: 0, width: Math.max(1, (calls / most) * 100), height: 8, rx: 1 }),
              ),
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

/** The next of 1, 2, 4 or 8 times a power of ten, or of 5: ticks at its quarters are round. */
function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 4, 8, 10].find((factor) => factor * power >= value) ?? 10
  return step * power
}

const heightOf = (calls, highest) => (calls / highest) * (HEIGHT - TOP - BOTTOM)

function gridLines(highest) {
  return [0, 0.25, 0.5, 0.75, 1].flatMap((share) => {
    const y = HEIGHT - BOTTOM - heightOf(highest * share, highest)
    const tick = highest * share
    const label = svg('text', { x: LEFT - 8, y: y + 4, 'text-anchor': 'end' })
    label.textContent = Number.isInteger(tick) ? number.format(tick) : ''
    return [svg('line', { x1: LEFT, x2: WIDTH, y1: y, y2: y }), label]
  })
}

function bar({ day, live, test }, { index, count, highest }) {
  const step = (WIDTH - LEFT) / count
  const place = { x: LEFT + index * step + step * 0.12, width: step * 0.76 }
  const base = HEIGHT - BOTTOM
  const liveHeight = heightOf(live, highest)
  const testHeight = heightOf(test, highest)
  const title = svg('title')
  title.textContent = `${dateWords(day)}: ${number.format(live)} live, ${number.format(test)} test`
  // The whole column takes the pointer: a day with few calls is as easy to hit.
  const column = svg(
    'rect',
    { x: LEFT + index * step, y: TOP, width: step, height: base - TOP, class: 'column' },
    title,
  )
  return [
    svg('rect', { ...place, y: base - liveHeight, height: liveHeight, class: 'live' }),
    svg('rect', { ...place, y: base - liveHeight - testHeight, height: testHeight, class: 'test' }),
    column,
  ]
}

/** About six dates, so that they do not meet. */
function dateLabels(days) {
  const every = Math.max(1, Math.ceil(days.length / 6))
  const step = (WIDTH - LEFT) / days.length
  return days.flatMap(({ day }, index) => {
    if (index % every !== 0) return []
    const label = svg('text', { x: LEFT + (index + 0.5) * step, y: HEIGHT - 6, 'text-anchor': 'middle' })
    label.textContent = dateWords(day)
    return [label]
  })
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
