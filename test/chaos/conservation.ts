import { setTimeout as delay } from 'node:timers/promises'
import { atMost, type Claim, exactly } from '../soak/scenario.ts'
import { mostInWindow } from '../support/arrival-clock.ts'
import { send } from '../support/client.ts'
import type { CallRecord } from './load.ts'
import { NARROW } from './nonce.ts'
import type { Rig } from './rig.ts'

/** The exceptions from the law that a scenario may have. Every other exception must be zero. */
export interface Allowances {
  /**
   * Calls that may reach the upstream more than once: calls that were running when a process died,
   * and retries.
   */
  sentTwiceMax?: number
  /** Failed answers that callers may see. */
  failedMax?: number
  /** Callers leave by themselves in this scenario. */
  callersLeave?: boolean
  /** Redis loses its content, or cannot write. */
  losesCounts?: boolean
  /** The scenario kills processes that hold callers' connections. */
  breaksConnections?: boolean
}

/** How long usage may take to reach the table, milliseconds. */
const USAGE_MS_MAX = 15_000

/**
 * The law of conservation: every call has exactly one outcome, every 200 carries the number of its
 * call and was sent to the upstream, usage equals what callers got, and no window exceeded a cap.
 */
export async function checkConservation(rig: Rig, records: CallRecord[], allow: Allowances): Promise<Claim[]> {
  const arrivals = await rig.upstream.arrivals()
  const times = new Map<number, number>()
  for (const { nonce } of arrivals) if (nonce !== undefined) times.set(nonce, (times.get(nonce) ?? 0) + 1)
  const answered = records.filter(({ outcome }) => outcome === '200')
  const failed = records.filter(({ outcome }) => outcome !== '200' && outcome !== 'left')
  const narrow = arrivals.filter(({ flow }) => flow === 'air-quality')
  rig.say(`outcomes: ${JSON.stringify(outcomesOf(records))}`)
  const claims = [
    exactly('answers that carry the data of another call', answered.filter(({ isEchoed }) => !isEchoed).length, 0),
    exactly(
      'answers that were never sent to the upstream',
      answered.filter(({ nonce }) => !times.has(nonce)).length,
      0,
    ),
    exactly('answers of 500', records.filter(({ outcome }) => outcome.startsWith('500')).length, 0),
    atMost(
      'calls sent to the upstream more than once',
      [...times.values()].filter((n) => n > 1).length,
      allow.sentTwiceMax ?? 0,
    ),
    atMost(
      'requests at the narrow upstream in any window',
      mostInWindow(
        narrow.map(({ at }) => ({ at, url: '' })),
        NARROW.windowMs,
      ),
      NARROW.max,
    ),
    atMost(
      'requests at the narrow upstream at once',
      Math.max(0, ...narrow.map(({ concurrent }) => concurrent)),
      NARROW.concurrency,
    ),
  ]
  if (!allow.callersLeave) {
    claims.push(exactly('calls without an answer', records.filter(({ outcome }) => outcome === 'left').length, 0))
  }
  if (allow.failedMax !== undefined) claims.push(atMost('failed answers', failed.length, allow.failedMax))
  if (!allow.losesCounts && !allow.breaksConnections && !allow.callersLeave) {
    claims.push(
      exactly(
        'successes counted as usage, less those that callers got',
        (await countedSuccesses(rig, answered.length)) - answered.length,
        0,
      ),
    )
  }
  return claims
}

/** The number of calls by outcome. */
export function outcomesOf(records: CallRecord[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { outcome } of records) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/**
 * Calls with status 200 in the usage of all accounts. It waits until there are as many as expected.
 */
async function countedSuccesses({ gateway, accounts, warmUps }: Rig, expected: number): Promise<number> {
  const endsAt = performance.now() + USAGE_MS_MAX
  const url = gateway.urls[0] ?? gateway.url
  for (;;) {
    let counted = -warmUps
    for (const { token } of accounts) {
      const { body } = await send(gateway, '/v1/usage?groupBy=status,mode', { token, url })
      const rows = (body.usage ?? []) as { status: number; mode: string; calls: number }[]
      for (const { status, mode, calls } of rows) if (status === 200 && mode === 'live') counted += calls
    }
    if (counted === expected || performance.now() > endsAt) return counted
    await delay(250)
  }
}
