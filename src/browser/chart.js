import uPlot from './uplot.js'

/** The charts of the page, by the element that holds them, each with the values drawn last. */
const charts = new Map()

const HEIGHT = 180

/** Steps of the vertical axis. They are round numbers; calls and milliseconds have no fractions. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6]

/**
 * Draws values over time into an element, or updates the chart that the element has.
 *
 * - `at`: moments, seconds since the epoch
 * - `series`: `{ label, color, values }`; the colour is a custom property such as `--good`
 * - `isStacked`: each series stands on the series after it; no point is drawn if all are 0
 * - `isBars`: bars instead of lines
 * - `line`: `{ label, color, value }`, a horizontal line
 * - `format`: writes a value in words; `formatTime`: writes a moment in words
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
        // In a stack, a series shows its own value, not the height of the stack.
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

/** Points without a neighbour that has a value, because a line would not show them. */
function isolatedPoints(chart, seriesIndex) {
  const values = chart.data[seriesIndex]
  const has = (index) => values[index] !== null && values[index] !== undefined
  return values.flatMap((_, index) => (has(index) && !has(index - 1) && !has(index + 1) ? [index] : []))
}

/**
 * The colour of a custom property in a form that a canvas understands. The element on which the
 * property is set resolves `light-dark()`.
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

// A chart reads its colours when it is made. If the colour scheme changes, each chart is made
// again.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const [element, drawn] of [...charts]) {
    forget(element, drawn)
    drawChart(element, drawn.options)
  }
})
