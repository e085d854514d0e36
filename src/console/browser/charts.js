import uPlot from '/assets/uplot.js'

const charts = new Map()
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Milliseconds as an axis says them. */
function time(ms) {
  if (ms === null || ms === undefined) return '–'
  return ms >= 1000 ? `${+(ms / 1000).toFixed(1)} s` : `${Math.round(ms)} ms`
}

/** Draws the three charts, or moves them on. */
export function drawCharts(hour) {
  const at = hour.at.map((ms) => ms / 1000)
  const stacked = hour.ok.map((count, index) => count + hour.failed[index])
  draw(
    'chart-calls',
    [at, stacked, hour.failed],
    [
      ['all', '--good'],
      ['failed', '--bad'],
    ],
    (value) => String(value ?? '–'),
  )
  draw(
    'chart-queue',
    [at, hour.queueP95, hour.queueP50],
    [
      ['p95', '--warn'],
      ['median', '--accent'],
    ],
    time,
  )
  draw(
    'chart-upstream',
    [at, hour.upstreamP95, hour.upstreamP50],
    [
      ['p95', '--warn'],
      ['median', '--accent'],
    ],
    time,
  )
}

function draw(id, data, series, format) {
  const element = document.getElementById(id)
  const known = charts.get(id)
  if (known) known.setData(data)
  else charts.set(id, create(element, data, series, format))
}

function create(element, data, series, format) {
  const grid = { stroke: color('--line'), width: 1 }
  const axis = { stroke: color('--dim'), grid, ticks: { ...grid, size: 4 }, font: '12px system-ui' }
  const chart = new uPlot(
    {
      ...sizeOf(element),
      cursor: { y: false, points: { size: 6 } },
      legend: { live: true },
      scales: { y: { range: (_chart, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
      axes: [
        {
          ...axis,
          values: (_chart, splits) => splits.map((second) => new Date(second * 1000).toTimeString().slice(0, 5)),
        },
        { ...axis, size: 58, values: (_chart, splits) => splits.map((value) => format(value)) },
      ],
      series: [
        { value: (_chart, second) => (second ? new Date(second * 1000).toTimeString().slice(0, 5) : '–') },
        ...series.map(([label, name]) => ({
          label,
          stroke: color(name),
          fill: `color-mix(in srgb, ${color(name)} 18%, transparent)`,
          width: 2,
          spanGaps: false,
          points: { size: 4 },
          value: (_chart, value) => format(value),
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
  for (const chart of charts.values()) chart.destroy()
  charts.clear()
})
