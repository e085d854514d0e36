import { setTimeout as delay } from 'node:timers/promises'
import type { Static } from 'typebox'
import type { OverviewAnswer } from '../fleet/overview-schema.ts'

type Overview = Static<typeof OverviewAnswer>

const LOOK_EVERY_MS = 300

/**
 * If a failure and the end of the last attempt are this close, they belong together, milliseconds.
 * They are written one after the other.
 */
const SAME_ATTEMPT_MS = 1_000

/**
 * Number of upstreams that a later start probes. They are enough to distinguish a failing upstream
 * from a missing network.
 */
const PROBED_MAX = 3

export interface ReachabilitySource {
  /** The address of the console. */
  url: string
  token: string
  /** When the start began, milliseconds since the epoch. */
  since: number
  /** Probes upstreams now. The console shows the results. */
  probe: (slugs: string[]) => void
}

/**
 * Says how many upstreams answer, from the probes and calls since the start. It waits until each
 * enabled upstream was tried, but no longer than `waitMs`. If the service ran before, scheduled
 * probes may be minutes away, so it probes a few upstreams and waits for these. Undefined if
 * nothing is known in time.
 */
export async function describeReachability(
  { url, token, since, probe }: ReachabilitySource,
  waitMs: number,
): Promise<string | undefined> {
  const startedAt = Date.now()
  let asked = 0
  for (;;) {
    const overview = await readOverview(url, token)
    const enabled = overview?.upstreams.filter((row) => row.enabled) ?? []
    const fresh = enabled.filter((row) => isFresh(row, since)).length
    const isKnownFromBefore = enabled.some((row) => row.health?.checkedAt && !isFresh(row, since))
    const slugs = isKnownFromBefore ? leastLimited(enabled) : []
    if (slugs.length > 0 && asked === 0) {
      asked = slugs.length
      probe(slugs)
    }
    const isComplete = enabled.length > 0 && fresh >= (asked || enabled.length)
    if (isComplete || Date.now() - startedAt > waitMs) return overview && reachabilityWords(overview, since)
    await delay(LOOK_EVERY_MS)
  }
}

/**
 * Slugs of the upstreams with the largest caps, so that a start uses nothing of a small or unknown
 * cap.
 */
function leastLimited(upstreams: Overview['upstreams']): string[] {
  return upstreams
    .flatMap(({ slug, caps, paused }) => (caps === null || paused !== null ? [] : [{ slug, rates: caps.rates }]))
    .map(({ slug, rates }) => ({ slug, perSecond: Math.min(...rates.map(({ max, seconds }) => max / seconds)) }))
    .sort((one, other) => other.perSecond - one.perSecond)
    .slice(0, PROBED_MAX)
    .map(({ slug }) => slug)
}

type Row = Pick<Overview['upstreams'][number], 'health'>

/** Whether an upstream was tried since a time, milliseconds since the epoch. */
function isFresh({ health }: Row, since: number): boolean {
  return Date.parse(health?.checkedAt ?? '') >= since
}

/**
 * A sentence such as `27 of 27 enabled upstreams reachable.` Undefined if none was tried since a
 * time, milliseconds since the epoch.
 */
export function reachabilityWords({ upstreams }: Pick<Overview, 'upstreams'>, since: number): string | undefined {
  const enabled = upstreams.filter((row) => row.enabled)
  const checked = enabled.filter((row) => isFresh(row, since))
  if (checked.length === 0) return undefined
  const failed = checked.filter(({ health }) => {
    const failedAt = Date.parse(health?.lastFailure?.at ?? '')
    return failedAt >= Date.parse(health?.checkedAt ?? '') - SAME_ATTEMPT_MS
  })
  const words = failed[0]?.health?.lastFailure?.words
  const answering = checked.length - failed.length
  const count =
    checked.length < enabled.length
      ? `${answering} of the ${checked.length} upstreams tried so far are reachable`
      : `${answering} of ${checked.length} enabled upstreams reachable`
  const hasNoNetwork = answering === 0 && failed.every(({ health }) => health?.lastFailure?.network)
  if (hasNoNetwork) return `${count} (${words}). No network? Test keys work without it.`
  if (answering === 0) return `${count} (${words}). Test keys work; the console shows why.`
  return failed.length === 0 ? `${count}.` : `${count}; the others are in the console.`
}

/** Undefined while the console does not answer. */
async function readOverview(url: string, token: string): Promise<Overview | undefined> {
  try {
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`${url}/v1/operator/overview`, { headers, signal: AbortSignal.timeout(2_000) })
    return response.ok ? ((await response.json()) as Overview) : undefined
  } catch {
    return undefined
  }
}
