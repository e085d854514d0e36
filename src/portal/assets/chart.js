import { el, svg } from './dom.js'

const WIDTH = 720
const HEIGHT = 160
const DAY_MS = 86_400_000

/** A bar a day, and the same as a table for those who do not see it. */
export function usageChart({ from, to, total, usage }) {
  const calls = new Map(usage.map((line) => [line.day, line.calls]))
  const days = []
  for (let time = Date.parse(from); time <= Date.parse(to); time += DAY_MS)
    days.push(new Date(time).toISOString().slice(0, 10))
  const highest = Math.max(1, ...calls.values())
  const step = WIDTH / days.length
  const bars = days.map((day, index) => {
    const height = ((calls.get(day) ?? 0) / highest) * (HEIGHT - 8)
    const bar = svg('rect', { x: index * step + 1, y: HEIGHT - height, width: Math.max(1, step - 3), height, rx: 2 })
    bar.append(svg('title'))
    bar.firstChild.textContent = `${day}: ${calls.get(day) ?? 0}`
    return bar
  })
  const words = `${total} calls from ${from} to ${to}, at most ${Math.max(0, ...calls.values())} a day`
  const picture = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: 'chart',
    role: 'img',
    'aria-label': words,
    preserveAspectRatio: 'none',
  })
  picture.append(svg('line', { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }), ...bars)
  const filled = days.filter((day) => calls.has(day))
  return el(
    'figure',
    {},
    picture,
    el('figcaption', { class: 'small' }, words),
    filled.length > 0 &&
      el(
        'details',
        {},
        el('summary', {}, 'As a table'),
        el(
          'table',
          {},
          el(
            'tbody',
            {},
            ...filled.map((day) => el('tr', {}, el('th', { scope: 'row' }, day), el('td', {}, String(calls.get(day))))),
          ),
        ),
      ),
  )
}
