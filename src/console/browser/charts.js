import { drawChart } from '../../browser/chart.js'

/** Milliseconds in words for an axis. */
function time(ms) {
  if (ms === null || ms === undefined) return '–'
  return ms >= 1000 ? `${+(ms / 1000).toFixed(1)} s` : `${+ms.toFixed(ms < 10 ? 1 : 0)} ms`
}

const count = (value) => (value === null || value === undefined ? '–' : String(+value.toFixed(1)))
const clock = (second) => new Date(second * 1000).toTimeString().slice(0, 5)

/** The shown period: its name, and the minutes of a step. */
const RANGES = { quarter: ['15 minutes', 1], hour: ['hour', 1], day: ['24 hours', 15] }

/** The text for a chart without values; empty if it has values. */
function emptyWords(lines, name) {
  if (lines === null) return 'Unknown: Redis does not answer.'
  const calls = [lines.answered, lines.refused, lines.failed].flat()
  return calls.some((value) => value > 0) ? '' : `No calls in the last ${name}.`
}

/** Draws or updates the three charts. While nothing is known they do not change. */
export function drawCharts(lines, range) {
  const [name, minutes] = RANGES[range]
  /** @type {NodeListOf<HTMLElement>} */
  const charts = document.querySelectorAll('.chart')
  for (const element of charts) element.dataset.empty = emptyWords(lines, name)
  if (lines === null) return
  const at = lines.at.map((ms) => ms / 1000)
  const draw = (id, options) => drawChart(document.getElementById(id), { at, formatTime: clock, ...options })
  const aMinute = (values) => values.map((value) => value / minutes)
  draw('chart-calls', {
    isStacked: true,
    format: count,
    series: [
      { label: 'answered', color: '--good', values: aMinute(lines.answered) },
      { label: 'refused (4xx)', color: '--fair', values: aMinute(lines.refused) },
      { label: 'failed (5xx)', color: '--bad', values: aMinute(lines.failed) },
    ],
  })
  const times = (p95, median) => [
    { label: 'p95', color: '--fair', values: p95 },
    { label: 'median', color: '--accent', values: median },
  ]
  draw('chart-queue', { format: time, series: times(lines.queueP95, lines.queueP50) })
  draw('chart-upstream', { format: time, series: times(lines.upstreamP95, lines.upstreamP50) })
}
