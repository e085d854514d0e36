import uPlot from '/assets/uplot.js'

const charts = new Map()
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Milliseconds as an axis says them. */
function time(ms) {
  if (ms === null || ms === undefined) return '–'
  return ms >= 1000 ? `${+(ms / 1000).toFixed(1)} s` : `${+ms.toFixed(ms < 10 ? 1 : 0)} ms`
}

const count = (value) => String(value ?? '–')

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
  // Stacked: each line holds those below it. A minute without calls has no point.
  const orNull = (values) =>
    values.map((value, index) => (hour.answered[index] + hour.refused[index] + hour.failed[index] > 0 ? value : null))
  const refused = hour.failed.map((value, index) => value + hour.refused[index])
  const all = refused.map((value, index) => value + hour.answered[index])
  const calls = [
    ['answered', '--good', hour.answered],
    ['refused (4xx)', '--warn', hour.refused],
    ['failed (5xx)', '--bad', hour.failed],
  ]
  draw('chart-calls', [at, orNull(all), orNull(refused), orNull(hour.failed)], calls, count)
  const times = [
    ['p95', '--warn'],
    ['median', '--accent'],
  ]
  draw('chart-queue', [at, hour.queueP95, hour.queueP50], times, time)
  draw('chart-upstream', [at, hour.upstreamP95, hour.upstreamP50], times, time)
}

function draw(id, data, series, format) {
  const known = charts.get(id)
  if (known) {
    known.shares = series.map(([, , values]) => values)
    known.chart.setData(data)
    return
  }
  const drawn = { shares: series.map(([, , values]) => values) }
  charts.set(id, drawn)
  drawn.chart = create(document.getElementById(id), { data, series, format, drawn })
}

/** Minutes with a value and none beside it: a line would not show them. */
function isolated(chart, seriesIndex) {
  const values = chart.data[seriesIndex]
  const has = (index) => values[index] !== null && values[index] !== undefined
  return values.flatMap((_, index) => (has(index) && !has(index - 1) && !has(index + 1) ? [index] : []))
}

function create(element, { data, series, format, drawn }) {
  const grid = { stroke: color('--line'), width: 1 }
  const axis = { stroke: color('--dim'), grid, ticks: { ...grid, size: 4 }, font: '12px system-ui' }
  const clock = (second) => new Date(second * 1000).toTimeString().slice(0, 5)
  const chart = new uPlot(
    {
      ...sizeOf(element),
      cursor: { y: false, points: { size: 6 } },
      legend: { live: true },
      scales: { y: { range: (_chart, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
      axes: [
        { ...axis, values: (_chart, splits) => splits.map(clock) },
        {
          ...axis,
          size: 58,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6],
          values: (_chart, splits) => splits.map(format),
        },
      ],
      series: [
        { label: 'At', value: (_chart, second) => (second ? clock(second) : '–') },
        ...series.map(([label, name], index) => ({
          label,
          stroke: color(name),
          fill: `color-mix(in srgb, ${color(name)} 18%, transparent)`,
          width: 2,
          spanGaps: false,
          points: { size: 6, fill: color(name), filter: (of, seriesIndex) => isolated(of, seriesIndex) },
          // A stacked line's own share, not its height.
          value: (_chart, value, _series, point) =>
            format(point === null ? null : (drawn.shares[index]?.[point] ?? value)),
        })),
      ],
    },
    data,
    element,
  )
  new ResizeObserver(() => chart.setSize(sizeOf(element))).observe(element)
  return chart
}

function sizeOf(element) {
  return { width: Math.max(200, element.clientWidth), height: 170 }
}

// Colours are taken when a chart is made: other ones, other charts.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const { chart } of charts.values()) chart.destroy()
  charts.clear()
})
