import type { UsageEntry } from '../db/usage.ts'
import type { CallJob } from '../queue/call-job.ts'
import { refundOf, shownStatusOf, type Verdict } from '../queue/verdict.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'

export interface UsedCall {
  call: Pick<CallJob, 'accountId' | 'keyId' | 'slug' | 'mode' | 'limitsAcquiredAt'>
  /** A refused call is shown in usage and never charged. */
  verdict: Verdict
}

/** How long an id is remembered, so that it counts once; longer than a write is repeated. */
const MARKER_SECONDS = 300

const record = loadScript(new URL('./lua/record-usage.lua', import.meta.url), { MARKER_SECONDS })

/** Records usage. A repetition with the same id counts nothing. */
export async function recordUsage(redis: RedisConnection, calls: UsedCall[], id: string): Promise<void> {
  const counts = new Map<string, number>()
  for (const { call, verdict } of calls) {
    const [status, refund] = [shownStatusOf(verdict), refundOf(verdict)]
    // The calls of the month are counted by their status, except these.
    const isRefused = refund === 'all' || (refund === 'month' && status < 500)
    const day = new Date(call.limitsAcquiredAt).toISOString().slice(0, 10)
    const { accountId, keyId, slug, mode } = call
    const key = keyId ?? 'session'
    const field = `${day}|${accountId}|${key}|${slug}|${status}|${mode}${isRefused ? '|refused' : ''}`
    counts.set(field, (counts.get(field) ?? 0) + 1)
  }
  await record.run(redis, [keys.usagePending, keys.usageWritten(id)], [...counts].flat())
}

/** Undefined if the field is not one of our fields. */
export function decodeEntry(field: string): UsageEntry | undefined {
  const match =
    /^(\d{4}-\d{2}-\d{2})\|([0-9a-f-]{36})\|([0-9a-f-]{36}|session)\|([\w-]+)\|(\d{3})\|(live|test)(\|refused)?$/.exec(
      field,
    )
  if (!match) return undefined
  const [, day = '', accountId = '', key = '', slug = '', status, mode, refused] = match
  const isRefused = refused !== undefined
  return { day, accountId, key, slug, status: Number(status), mode: mode === 'test' ? 'test' : 'live', isRefused }
}
