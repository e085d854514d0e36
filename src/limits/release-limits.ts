import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { type LimitSubject, limitKeys } from './account-limits.ts'
import { isCharged } from './charge.ts'
import { monthOf } from './month.ts'

/** How long it is remembered that an asynchronous call ended, milliseconds: two processes complete it within minutes. */
const ENDED_MS = 3_600_000

const releaseScript = loadScript(new URL('./lua/release-limits.lua', import.meta.url), { ENDED_MS })
const refundScript = loadScript(new URL('./lua/refund-limits.lua', import.meta.url))

export interface EndedCall {
  callId: string
  usageStatus: number
  /** Id of the application or API key; only an application's month is counted. Absent for a session. */
  keyId?: string | undefined
  isAsync?: boolean | undefined
}

/**
 * Releases the leases of calls that were admitted in one month, and refunds the unit of each that is not charged to the
 * account's month and to the application's. Repeating it does nothing.
 * @returns how many had not been released before
 */
export async function releaseLimits(
  redis: RedisConnection,
  { accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>,
  { month, ended }: { month: string; ended: EndedCall[] },
): Promise<number> {
  const keys = [accountKeys.inFlight(accountId, mode), accountKeys.month(accountId, month)]
  const numberOf = (key: string): number => {
    const index = keys.indexOf(key)
    return index < 0 ? keys.push(key) : index + 1
  }
  const calls = ended.flatMap(({ callId, usageStatus, keyId, isAsync = false }) => {
    const refundsMonth = mode === 'live' && !isCharged(usageStatus)
    const mayHaveMonth = refundsMonth && keyId !== undefined
    const ownMonth = mayHaveMonth ? numberOf(accountKeys.connectionMonth(accountId, keyId, month)) : 0
    return [callId, refundsMonth ? 1 : 0, ownMonth, isAsync ? numberOf(accountKeys.ended(accountId, callId)) : 0]
  })
  return Number(await releaseScript.run(redis, keys, calls))
}

/** Refunds all that a call took; repeating it does nothing. @returns whether it had taken anything */
export async function refundCall(
  redis: RedisConnection,
  subject: LimitSubject,
  { callId, at }: { callId: string; at: number },
): Promise<boolean> {
  const [, minute = '', inFlight = '', month = '', ...connection] = limitKeys(subject, monthOf(at).name)
  // A test call takes no unit of its account's month.
  const keys = [minute, inFlight, ...(subject.mode === 'live' ? [month] : []), ...connection]
  return (await refundScript.run(redis, keys, [callId])) === 1
}

/** When a call took its units, by Redis' clock in milliseconds; undefined where it took none, or longer ago than a minute. */
export async function readAcquiredAt(
  redis: RedisConnection,
  { accountId, mode }: Pick<LimitSubject, 'accountId' | 'mode'>,
  callId: string,
): Promise<number | undefined> {
  const micros = await redis.zscore(accountKeys.minute(accountId, mode), callId)
  return micros === null ? undefined : Number(micros) / 1_000
}

/** A node releases the lease when the call is answered or its caller left. */
export async function isInFlight(
  redis: RedisConnection,
  { id, accountId, mode }: { id: string; accountId: string; mode: 'live' | 'test' },
): Promise<boolean> {
  return (await redis.zscore(accountKeys.inFlight(accountId, mode), id)) !== null
}
