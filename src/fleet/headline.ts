import type { Headline, Snapshot } from './snapshot.ts'
import { stateOf } from './words.js'

/** Most APIs that the headline names. Further APIs are counted. */
const NAMED_MAX = 5

/**
 * The state of the whole service. What callers get decides first, then the health of the sources.
 */
export function headlineOf({
  problems,
  upstreams,
  processes,
  stores,
}: Pick<Snapshot, 'problems' | 'upstreams' | 'processes' | 'stores'>): Headline {
  if (!stores.redis) return down('Down', 'Redis does not answer: calls are refused.')
  if (!stores.postgres)
    return { state: 'Degraded', label: 'Degraded', text: 'Postgres does not answer: only keys in use work.' }
  // A problem of the whole service comes first, because all APIs may be healthy although nobody can
  // reach them.
  const gravest = problems.find(({ rank, slug }) => rank === 0 && slug === null)
  if (gravest) return down(gravest.label, `${gravest.text}.`)
  if (processes === null || upstreams.some(({ enabled, health }) => enabled && health === null))
    return { state: 'Unknown', label: 'Unknown', text: 'The state of the APIs is not known.' }
  const failing = problems.filter(({ rank }) => rank === 0)
  if (failing.length > 0) return failingHeadline(failing)
  return calmHeadline(upstreams)
}

const down = (label: string, text: string): Headline => ({ state: 'Down', label, text })

/**
 * If one API fails, the headline has the reason. If several fail, each has a line of its own below.
 */
function failingHeadline(failing: Snapshot['problems']): Headline {
  const [first] = failing
  const slugs = [...new Set(failing.map(({ slug }) => slug))]
  if (first && slugs.length === 1) return down(first.label, `${first.text}.`)
  const named = slugs.slice(0, NAMED_MAX)
  const more = slugs.length - named.length
  const last = more > 0 ? `${more} more` : named.pop()
  return down('Failing', `Calls to ${named.join(', ')} and ${last} fail.`)
}

function calmHeadline(upstreams: Snapshot['upstreams']): Headline {
  const states = upstreams.map(stateOf).filter((state) => state !== 'Disabled')
  const of = (wanted: string): number => states.filter((state) => state === wanted).length
  const others = (
    [
      ['Degraded', 'degraded'],
      ['Limited', 'limited by the source'],
      ['Paused', 'paused'],
      ['Unchecked', 'not checked yet'],
    ] as const
  ).flatMap(([state, words]) => (of(state) > 0 ? [`${of(state)} ${words}`] : []))
  const isTrouble = of('Degraded') + of('Limited') + of('Paused') > 0
  const isUnknown = of('Healthy') === 0 && of('Unchecked') > 0
  const state = isTrouble ? 'Degraded' : isUnknown ? 'Unknown' : 'Healthy'
  if (others.length === 0) return { state, label: state, text: allHealthy(states.length) }
  return {
    state,
    label: isTrouble ? troubleLabel(of) : isUnknown ? 'Unchecked' : state,
    text: `${of('Healthy')} of ${states.length} APIs are healthy, ${others.join(', ')}.`,
  }
}

function allHealthy(count: number): string {
  if (count === 0) return 'No API is enabled.'
  return count === 1 ? 'The only enabled API is healthy.' : `All ${count} enabled APIs are healthy.`
}

function troubleLabel(of: (state: string) => number): string {
  return ['Degraded', 'Limited'].find((state) => of(state) > 0) ?? 'Paused'
}
