import { setTimeout as delay } from 'node:timers/promises'
import type { Static } from 'typebox'
import type { OverviewAnswer } from '../fleet/overview-answer.ts'

type Overview = Static<typeof OverviewAnswer>

const LOOK_EVERY_MS = 300

/** A failure this much before the last attempt's end belongs to it, milliseconds: they are written one after the other. */
const SAME_ATTEMPT_MS = 1_000

/** On a later start probes come when they are due: how long the first of them is waited for, milliseconds. */
const FIRST_PROBE_MS_MAX = 1_500

/**
 * Says how many upstreams answer, by the probes and calls since the start, milliseconds since the epoch: waits until each enabled one was tried, at most
 * `waitMs`, or for the first where all were tried on an earlier start. Undefined where nothing is known by then.
 */
export async function describeReachability(
  { url, token, since }: { url: string; token: string; since: number },
  waitMs: number,
): Promise<string | undefined> {
  const startedAt = Date.now()
  for (;;) {
    const overview = await readOverview(url, token)
    const waitedMs = Date.now() - startedAt
    const enabled = overview?.upstreams.filter((row) => row.enabled) ?? []
    const fresh = enabled.filter((row) => isFresh(row, since)).length
    const isKnownFromBefore = enabled.length > 0 && enabled.every(({ health }) => health?.checkedAt)
    const isComplete = enabled.length > 0 && fresh === enabled.length
    const isOver = waitedMs > (isKnownFromBefore && fresh < enabled.length ? FIRST_PROBE_MS_MAX : waitMs)
    if (isComplete || isOver) return overview && reachabilityWords(overview, since)
    await delay(LOOK_EVERY_MS)
  }
}

type Row = Pick<Overview['upstreams'][number], 'health'>

/** Whether an upstream was tried since then, milliseconds since the epoch. */
function isFresh({ health }: Row, since: number): boolean {
  return Date.parse(health?.checkedAt ?? '') >= since
}

/** `27 of 27 upstreams answer.`; undefined while none was tried since then, milliseconds since the epoch. */
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
  const tried = checked.length < enabled.length ? ' tried so far' : ''
  const count = `${answering} of ${checked.length} upstreams${tried} answer`
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
