import uPlot from './uplot.js'

/** The charts in the page by the element they stand in, each with what it was last drawn from. */
const charts = new Map()

const HEIGHT = 180

/** Steps of the vertical axis: round numbers, and no fractions of a call or millisecond. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6]

/**
 * Draws values over time into an element, or moves its chart on to new values.
 *
 * - `at`: moments, seconds since the epoch
 * - `series`: `{ label, color, values }`, the colour a custom property such as `--good`
 * - `isStacked`: each series stands on the series after it; if all are 0 there is no point
 * - `isBars`: bars instead of lines
 * - `line`: `{ label, color, value }`, a level that is the same at all moments
 * - `format`: a value in words; `formatTime`: a moment in words
 */
export function drawChart(element, options) {
  forgetRemoved()
  const known = charts.get(element)
  if (known) {
    known.options = options
    known.chart.setData(dataOf(options))
    return
  }
  const drawn = { options }
  charts.set(element, drawn)
  drawn.chart = new uPlot(settings(element, drawn), dataOf(options), element)
  drawn.observer = new ResizeObserver(() => drawn.chart.setSize(sizeOf(element)))
  drawn.observer.observe(element)
}

function dataOf({ at, series, isStacked, line }) {
  const values = series.map((one) => one.values)
  const level = line ? [at.map(() => line.value)] : []
  if (!isStacked) return [at, ...values, ...level]
  const sumFrom = (first, index) => values.slice(first).reduce((sum, one) => sum + one[index], 0)
  return [
    at,
    ...values.map((one, first) => one.map((_, index) => (sumFrom(0, index) > 0 ? sumFrom(first, index) : null))),
    ...level,
  ]
}

/** @returns {import('uplot').Options} */
function settings(element, drawn) {
  const { series, isBars, at, line } = drawn.options
  const grid = { stroke: colorOf('--line'), width: 1 }
  const axis = { stroke: colorOf('--soft'), grid, ticks: { ...grid, size: 4 }, font: '12px system-ui' }
  const time = (second) => drawn.options.formatTime(second)
  const halfStep = isBars && at.length > 1 ? (at[1] - at[0]) / 2 : 0
  return {
    ...sizeOf(element),
    ...(isBars ? { tzDate: (second) => uPlot.tzDate(new Date(second * 1_000), 'Etc/UTC') } : {}),
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
    scales: {
      x: { range: (_chart, from, to) => [from - halfStep, to + halfStep] },
      y: { range: (_chart, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, values: (_chart, splits) => splits.map(time) },
      {
        ...axis,
        size: 58,
        incrs: STEPS,
        values: (_chart, splits) => splits.map((split) => drawn.options.format(split)),
      },
    ],
    series: [
      { label: 'At', value: (_chart, second) => (second ? time(second) : '–') },
      ...series.map((one, index) => ({
        label: one.label,
        // A series of a stack shows its own share, not the height of the stack.
        // biome-ignore lint/complexity/useMaxParams: the form of uPlot's callback.
        value: (_chart, _value, _series, point) =>
          drawn.options.format(point === null ? null : drawn.options.series[index]?.values[point]),
        ...(isBars ? barStyle(one.color) : lineStyle(one.color)),
      })),
      ...(line ? [levelOf(drawn)] : []),
    ],
  }
}

function levelOf({ options }) {
  const { label, color, value } = options.line
  return {
    ...{ label, stroke: colorOf(color), width: 1.5, dash: [6, 4], points: { show: false } },
    value: () => options.format(value),
  }
}

function barStyle(name) {
  const color = colorOf(name)
  return {
    stroke: color,
    fill: color,
    width: 0,
    paths: uPlot.paths.bars({ size: [0.76, 40] }),
    points: { show: false },
  }
}

function lineStyle(name) {
  const color = colorOf(name)
  return {
    stroke: color,
    fill: `color-mix(in srgb, ${color} 18%, transparent)`,
    width: 2,
    spanGaps: false,
    points: { size: 6, fill: color, filter: isolatedPoints },
  }
}

/** Points with a value and none beside it: a line would not show them. */
function isolatedPoints(chart, seriesIndex) {
  const values = chart.data[seriesIndex]
  const has = (index) => values[index] !== null && values[index] !== undefined
  return values.flatMap((_, index) => (has(index) && !has(index - 1) && !has(index + 1) ? [index] : []))
}

/**
 * A custom property as a canvas understands it: `light-dark()` is resolved by the element that it
 * is set on.
 */
function colorOf(name) {
  const probe = document.createElement('i')
  probe.style.color = `var(${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function sizeOf(element) {
  return { width: Math.max(200, element.clientWidth), height: HEIGHT }
}

function forget(element, { chart, observer }) {
  observer.disconnect()
  chart.destroy()
  charts.delete(element)
}

function forgetRemoved() {
  for (const [element, drawn] of charts) if (!element.isConnected && drawn.wasConnected) forget(element, drawn)
  for (const [element, drawn] of charts) drawn.wasConnected ||= element.isConnected
}

// Colours are taken when a chart is made: other colours, another chart.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const [element, drawn] of [...charts]) {
    forget(element, drawn)
    drawChart(element, drawn.options)
  }
})
