import Type, { type Static } from 'typebox'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import { GatewayError } from '../errors.ts'
import { redisNow } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/**
 * A notice of the operator for everybody who opens a page, for example about planned downtime. It
 * has an end.
 */
export const OperatorNotice = Type.Object(
  {
    text: Type.String({
      minLength: 1,
      maxLength: 300,
      pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f]+$',
      description: 'Plain text in one line, not only blanks',
    }),
    until: Type.String({ format: 'date-time', description: 'End of the notice: the pages show it until then' }),
  },
  { title: 'OperatorNotice' },
)

export type OperatorNotice = Static<typeof OperatorNotice>

/** Longest time for which a notice is shown, milliseconds, so that no forgotten notice stays. */
const STANDS_MS_MAX = 90 * 86_400_000

/** @throws what Redis throws */
export async function readNotice(redis: RedisConnection): Promise<OperatorNotice | undefined> {
  const text = await redis.get(keys.operatorNotice)
  return text === null ? undefined : JSON.parse(text)
}

/**
 * Replaces the notice, or removes it if undefined is given, and records the change in the audit
 * log. Redis deletes the notice at its end.
 *
 * @throws GatewayError VALIDATION_ERROR if the end has passed or is too far away
 */
export async function changeNotice(
  { db, redis }: { db: Db; redis: RedisConnection },
  notice: OperatorNotice | undefined,
  actor: string,
): Promise<void> {
  const endsAt = notice && Date.parse(notice.until)
  const leftMs = endsAt === undefined ? 0 : endsAt - (await redisNow(redis))
  if (endsAt !== undefined && !(leftMs > 0 && leftMs <= STANDS_MS_MAX)) {
    throw new GatewayError('VALIDATION_ERROR', {
      message: 'The end of a notice must be in the future, at most 90 days ahead.',
    })
  }
  const before = await readNotice(redis)
  const written = { actor, subject: 'portal', before: { notice: before ?? null }, after: { notice: notice ?? null } }
  await insertAuditRecord(db, { action: 'notice.change', ...written })
  if (endsAt === undefined) await redis.del(keys.operatorNotice)
  else await redis.set(keys.operatorNotice, JSON.stringify(notice), 'PXAT', endsAt)
}
