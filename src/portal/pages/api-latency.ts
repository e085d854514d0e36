import { durationWords } from '../../browser/timing-bar.js'
import { type Html, html } from '../../pages/html.ts'

/** How long the source took in each quarter of an hour, milliseconds; null if nobody called it. */
export interface LatencyOfDay {
  median: (number | null)[]
  p95: (number | null)[]
}

const WIDTH = 720
const HEIGHT = 96

/** A chart of the source's latency over the last 24 hours; empty if nobody called the API. */
export function latencyOfTheDay({ median, p95 }: LatencyOfDay): Html {
  const slowest = Math.max(0, ...p95.map((ms) => ms ?? 0))
  if (slowest === 0) return html``
  const known = median.filter((ms) => ms !== null)
  const words = `median ${rangeWords(known)}, 95 % of the answers within ${durationWords(slowest)}`
  const line = (values: (number | null)[]) => pathOf(values, slowest)
  return html`<h3>Time that the source took</h3>
<svg class="latency" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Time that the source took in the last 24 hours: ${words}"><path class="p95" d="${line(p95)}"></path><path class="median" d="${line(median)}"></path></svg>
<p class="axis small" aria-hidden="true"><span>24 h ago</span><span>now</span></p>
<p class="small">Live calls, by quarters of an hour: ${words}.</p>`
}

function rangeWords(values: number[]): string {
  const [least, most] = [durationWords(Math.min(...values)), durationWords(Math.max(...values))]
  return least === most ? least : `${least} to ${most}`
}

/** A step for each quarter with a value, and a gap for each quarter without. */
function pathOf(values: (number | null)[], most: number): string {
  const step = WIDTH / values.length
  return values
    .map((ms, index) => {
      if (ms === null) return ''
      const y = Math.round((HEIGHT - 3) * (1 - ms / most) + 2)
      const [from, to] = [Math.round(index * step), Math.round((index + 1) * step)]
      return `${index > 0 && values[index - 1] !== null ? 'L' : 'M'}${from} ${y}L${to} ${y}`
    })
    .join('')
}
