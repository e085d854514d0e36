import type { CallJob } from '../queue/call-job.ts'
import type { Refund } from '../queue/verdict.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { LEASE_MS_MAX, type LimitSubject } from './account-limits.ts'
import { RETRY_MS_MIN } from './limit-refusal.ts'
import { monthOf } from './month.ts'

/**
 * How long it is remembered that an asynchronous call ended, milliseconds. Two processes that end
 * it do so within minutes.
 */
const ENDED_MS = 3_600_000

/**
 * Most calls of an account whose expected end is stored. The default plans allow fewer in flight.
 */
const NOTES_MAX = 1_000

const expectEndScript = loadScript(new URL('./lua/expect-end.lua', import.meta.url), { NOTES_MAX, LEASE_MS_MAX })

const endScript = loadScript(new URL('./lua/end.lua', import.meta.url), { ENDED_MS, LEASE_MS_MAX })

export interface CallToEnd extends Pick<CallJob, 'id' | 'limitsAcquiredAt'> {
  refund: Refund
  /** Id under which the calls of its key or connection are counted; absent if it has no limits. */
  credentialId?: string | undefined
  isAsync?: boolean | undefined
  next?: NextCall | undefined
}

/** The call of the same batch that takes over the lease, and the lease's duration. */
export interface NextCall {
  callId: string
  leaseMs: number
}

/** The result of a step that ends calls. */
export interface EndStep {
  /** How many of the calls had not ended before. */
  ended: number
  /**
   * The account's version, if a call of the step has a next call. If the version has changed, the
   * caller's rights may have changed.
   */
  version: string
}

/** The result for a call that another process ends, or that took no units. */
export const NOTHING_ENDED: Promise<EndStep> = Promise.resolve({ ended: 0, version: '' })

/**
 * Ends calls of one account in one atomic step: ends their leases, and gives back what they do not
 * cost. A repetition does nothing.
 *
 * @param now for tests; absent: the clock of Redis
 * @throws what Redis throws; then it is unknown whether the step ran
 */
export async function endCalls(
  redis: RedisConnection,
  { accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>,
  { calls, now }: { calls: CallToEnd[]; now?: number },
): Promise<EndStep> {
  const keys = [
    accountKeys.version(accountId),
    accountKeys.minute(accountId, mode),
    accountKeys.inFlight(accountId, mode),
  ]
  const numberOf = (key: string): number => keys.indexOf(key) + 1 || keys.push(key)
  // The script expects the lease key of a credential after its minute log.
  const numberOfCredential = (id: string): number => {
    const number = numberOf(accountKeys.credentialMinute(accountId, mode, id))
    numberOf(accountKeys.credentialInFlight(accountId, mode, id))
    return number
  }
  const values = calls.flatMap(({ id, refund, limitsAcquiredAt, credentialId, isAsync, next }) => {
    // A test call takes no unit of the month.
    const month = mode === 'live' && refund !== 'nothing' ? monthOf(limitsAcquiredAt).name : undefined
    const ofAccount = month === undefined ? 0 : numberOf(accountKeys.month(accountId, month))
    const isCounted = month !== undefined && credentialId !== undefined
    const ofCredential = isCounted ? numberOf(accountKeys.credentialMonth(accountId, credentialId, month)) : 0
    const marker = isAsync ? numberOf(accountKeys.ended(accountId, id)) : 0
    const credential = credentialId === undefined ? 0 : numberOfCredential(credentialId)
    return [id, refund === 'all' ? 1 : 0, ofAccount, ofCredential, marker, credential, next?.callId ?? '']
  })
  // A step knows a single duration. If calls of several batches end together, it is the longest.
  const leaseMs = Math.max(0, ...calls.map(({ next }) => next?.leaseMs ?? 0))
  const [ended, version] = (await endScript.run(redis, keys, [now ?? '', leaseMs, ...values])) as [number, string]
  return { ended, version }
}

/**
 * When a call took its units, in the time of Redis, milliseconds; undefined if it took none, or
 * more than a minute ago.
 */
export async function readAcquiredAt(
  redis: RedisConnection,
  { accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>,
  callId: string,
): Promise<number | undefined> {
  const micros = await redis.zscore(accountKeys.minute(accountId, mode), callId)
  return micros === null ? undefined : Number(micros) / 1_000
}

/**
 * Whether a call holds a lease. Its node releases the lease when the call is answered or its caller
 * leaves.
 */
export async function isInFlight(
  redis: RedisConnection,
  { id, accountId, mode }: { id: string; accountId: string; mode: 'live' | 'test' },
): Promise<boolean> {
  return (await redis.zscore(accountKeys.inFlight(accountId, mode), id)) !== null
}

type RunningCall = Pick<CallJob, 'id' | 'accountId' | 'mode' | 'slug' | 'limitsAcquiredAt' | 'deadline'>

/**
 * Notes when a call is expected to end: after the forecast wait for a permit and the time that half
 * of the upstream's answers take, and by its deadline. If the calls in flight refuse a call of the
 * same account at any node, `acquire.lua` quotes the soonest end. A call that takes a second or
 * less needs no note, because no refusal quotes less. Nobody waits for the note.
 *
 * @param etaMs forecast wait for a permit
 */
export function noteExpectedEnd(
  { redis, health }: { redis: RedisConnection; health: { usualMs: (slug: string) => number | undefined } },
  { id, accountId, mode, slug, limitsAcquiredAt, deadline }: RunningCall,
  etaMs: number,
): void {
  const workMs = mode === 'test' ? 0 : (health.usualMs(slug) ?? 0)
  const endsAt = Math.ceil(Math.min(limitsAcquiredAt + etaMs + workMs, deadline))
  if (endsAt - limitsAcquiredAt <= RETRY_MS_MIN) return
  const noting = expectEndScript.run(redis, [accountKeys.expectedEnds(accountId, mode)], [limitsAcquiredAt, endsAt, id])
  // Fails open: without an expected end, the Retry-After of a refusal is one second.
  noting.catch(() => undefined)
}
