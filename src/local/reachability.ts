import { setTimeout as delay } from 'node:timers/promises'
import type { Static } from 'typebox'
import type { OverviewAnswer } from '../fleet/overview-answer.ts'

type Overview = Static<typeof OverviewAnswer>

const LOOK_EVERY_MS = 300

/** A failure this much before the last attempt's end belongs to it, milliseconds: they are written one after the other. */
const SAME_ATTEMPT_MS = 1_000

/**
 * Says how many upstreams answer, by what the service's own probes found: waits until each enabled one was tried, at
 * most `waitMs`. Undefined where nothing is known by then.
 */
export async function describeReachability(
  { url, token }: { url: string; token: string },
  waitMs: number,
): Promise<string | undefined> {
  const endsAt = performance.now() + waitMs
  for (;;) {
    const overview = await readOverview(url, token)
    const isComplete = overview?.upstreams.every(({ enabled, health }) => !enabled || health?.checkedAt)
    if (isComplete || performance.now() > endsAt) return overview && reachabilityWords(overview)
    await delay(LOOK_EVERY_MS)
  }
}

/** `27 of 27 upstreams answer.`; undefined while none was tried. */
export function reachabilityWords({ upstreams }: Pick<Overview, 'upstreams'>): string | undefined {
  const checked = upstreams.filter(({ enabled, health }) => enabled && health?.checkedAt)
  if (checked.length === 0) return undefined
  const failed = checked.filter(({ health }) => {
    const failedAt = Date.parse(health?.lastFailure?.at ?? '')
    return failedAt >= Date.parse(health?.checkedAt ?? '') - SAME_ATTEMPT_MS
  })
  const words = failed[0]?.health?.lastFailure?.words
  const answering = checked.length - failed.length
  const count = `${answering} of ${checked.length} upstreams answer`
  if (answering === 0) return `${count} (${words}): no network? Test keys work without it.`
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
