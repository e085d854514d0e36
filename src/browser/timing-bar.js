import { escapeHtml } from './html.js'

/** The parts of a call's time in their order, with what happens in each. */
const PARTS = [
  ['admission', 'Admission', 'checks, limits and the forecast of the wait'],
  ['queue', 'Queue', 'until a worker had the call'],
  ['permit', 'Permit', "waiting for a slot of the source's cap"],
  ['upstream', 'Upstream', 'requests to the source'],
  ['rest', 'Rest', 'pauses between attempts or of a test scenario, mapping, and the way back'],
]

const WIDTH = 1_000

/**
 * What the timing bar reads of a call: milliseconds, null if unknown.
 *
 * @typedef {object} TimedCall
 * @property {number | null} admissionMs
 * @property {number | null} queueMs
 * @property {number | null} permitMs
 * @property {number | null} upstreamMs
 * @property {number} totalMs
 * @property {number | null} quotedMs
 */

/**
 * Where the time of a call went: each part with its share of the bar, and the point at which the
 * forecast wait would have ended. Two clocks measure the parts, so that their sum may exceed the
 * total by a little.
 *
 * @param {TimedCall} call
 */
export function timingOf({ admissionMs, queueMs, permitMs, upstreamMs, totalMs, quotedMs }) {
  const measured = {
    admission: admissionMs ?? 0,
    queue: queueMs ?? 0,
    permit: permitMs ?? 0,
    upstream: upstreamMs ?? 0,
  }
  const known = Object.values(measured).reduce((sum, ms) => sum + ms, 0)
  const all = { ...measured, rest: Math.max(0, totalMs - known) }
  // A refused call did not wait. Its forecast says how long the caller should wait, so the bar does
  // not show it.
  const forecastEnd = queueMs === null || !(quotedMs > 0) ? undefined : measured.admission + quotedMs
  const scale = Math.max(totalMs, known, forecastEnd ?? 0, 0.1)
  let x = 0
  const parts = PARTS.map(([name, label, meaning]) => {
    const part = { name, label, meaning, ms: all[name], x: (x / scale) * WIDTH, width: (all[name] / scale) * WIDTH }
    x += all[name]
    return part
  })
  return { parts, forecastX: forecastEnd === undefined ? undefined : (forecastEnd / scale) * WIDTH }
}

/**
 * `3.4 ms`, `120 ms`, `2.5 s`.
 *
 * @param {number} ms
 */
export function durationWords(ms) {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`
  return ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`
}

/**
 * The bar and the same facts as text, as HTML. Parts that took no time are left out. The HTML
 * contains only numbers and words of this file.
 *
 * @param {TimedCall} call
 */
export function timingBar(call) {
  const { parts, forecastX } = timingOf(call)
  const spent = parts.filter(({ ms }) => ms > 0)
  const words = spent.map(({ label, ms }) => `${label} ${durationWords(ms)}`).join(', ')
  const rects = spent.map(
    ({ name, x, width }) =>
      `<rect class="part-${name}" x="${x.toFixed(1)}" y="6" width="${Math.max(width, 2).toFixed(1)}" height="28"/>`,
  )
  const mark =
    forecastX === undefined
      ? ''
      : `<line class="forecast" x1="${forecastX.toFixed(1)}" x2="${forecastX.toFixed(1)}" y1="0" y2="40" vector-effect="non-scaling-stroke"/>`
  const rows = spent.map(
    ({ name, label, meaning, ms }) =>
      `<div><dt><svg width="12" height="12" aria-hidden="true"><rect class="part-${name}" width="12" height="12" rx="3"/></svg> ${label}</dt><dd><b>${durationWords(ms)}</b> <small>${escapeHtml(meaning)}</small></dd></div>`,
  )
  return `<figure class="timing"><svg class="timing-bar" viewBox="0 0 ${WIDTH} 40" preserveAspectRatio="none" role="img" aria-label="Where the time went: ${escapeHtml(words)}">${rects.join('')}${mark}</svg>
<dl>${rows.join('')}</dl>${forecastText(call, forecastX)}</figure>`
}

function forecastText({ queueMs, permitMs, quotedMs }, forecastX) {
  if (quotedMs === null) return ''
  if (queueMs === null) return `<p>The refusal quoted a wait of ${durationWords(quotedMs)}.</p>`
  const waited = durationWords(queueMs + permitMs)
  const mark = forecastX === undefined ? '' : ', the dashed line'
  if (quotedMs === 0) return `<p>No wait was forecast; the call waited ${waited} (queue and permit).</p>`
  return `<p>The forecast wait was ${durationWords(quotedMs)}${mark}; the call waited ${waited} (queue and permit).</p>`
}
