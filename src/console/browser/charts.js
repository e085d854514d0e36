import { drawChart } from '../../browser/chart.js'

/** Milliseconds as an axis says them. */
function time(ms) {
  if (ms === null || ms === undefined) return '–'
  return ms >= 1000 ? `${+(ms / 1000).toFixed(1)} s` : `${+ms.toFixed(ms < 10 ? 1 : 0)} ms`
}

const count = (value) => String(value ?? '–')
const clock = (second) => new Date(second * 1000).toTimeString().slice(0, 5)

/** What a chart without any value says; empty when it has one. */
function emptyWords(hour) {
  if (hour === null) return 'Unknown: Redis does not answer.'
  const calls = [hour.answered, hour.refused, hour.failed].flat()
  return calls.some((value) => value > 0) ? '' : 'No calls in the last hour.'
}

/** Draws the three charts, or moves them on; while nothing is known they stay as they are. */
export function drawCharts(hour) {
  for (const element of document.querySelectorAll('.chart')) element.dataset.empty = emptyWords(hour)
  if (hour === null) return
  const at = hour.at.map((ms) => ms / 1000)
  const draw = (id, options) => drawChart(document.getElementById(id), { at, formatTime: clock, ...options })
  draw('chart-calls', {
    isStacked: true,
    format: count,
    series: [
      { label: 'answered', color: '--good', values: hour.answered },
      { label: 'refused (4xx)', color: '--fair', values: hour.refused },
      { label: 'failed (5xx)', color: '--bad', values: hour.failed },
    ],
  })
  const times = (p95, median) => [
    { label: 'p95', color: '--fair', values: p95 },
    { label: 'median', color: '--accent', values: median },
  ]
  draw('chart-queue', { format: time, series: times(hour.queueP95, hour.queueP50) })
  draw('chart-upstream', { format: time, series: times(hour.upstreamP95, hour.upstreamP50) })
}
