import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { AuditEntry } from './schema.ts'

export interface AuditRecord {
  /** Who: the operator's name as given, and the address it came from. */
  actor: string
  /** `user.update`, `upstream.pause`. */
  action: string
  /** Id of the user or slug of the upstream. */
  subject: string
  /** What was changed, as it was and as it is; never a key. */
  before?: object
  after?: object
}

/** Writes a change down; in the transaction of the change itself if there is a transaction. */
export async function insertAuditRecord(db: Db, record: AuditRecord): Promise<void> {
  await db
    .insertInto('audit_log')
    .values({
      actor: record.actor,
      action: record.action,
      subject: record.subject,
      before: record.before === undefined ? null : JSON.stringify(record.before),
      after: record.after === undefined ? null : JSON.stringify(record.after),
    })
    .execute()
}

/** Which changes are wanted; absent members leave nothing out. */
export interface AuditFilter {
  from?: Date | undefined
  /** The first moment that is not wanted any more. */
  to?: Date | undefined
  /** A part of who did it, in any case. */
  actor?: string | undefined
  /** `upstream.pause`, or the part before the dot for all of its kind. */
  action?: string | undefined
  subject?: string | undefined
  /** Only changes before the change with this id. */
  beforeId?: string | undefined
}

/** The latest changes that fit, newest first. */
export async function listAuditRecords(db: Db, filter: AuditFilter, countMax: number): Promise<AuditEntry[]> {
  const { from, to, actor, action, subject, beforeId } = filter
  let query = db.selectFrom('audit_log').selectAll().orderBy('id', 'desc').limit(countMax)
  if (from) query = query.where('at', '>=', from)
  if (to) query = query.where('at', '<', to)
  if (actor) query = query.where(sql<boolean>`position(lower(${actor}) in lower(actor)) > 0`)
  if (action) query = query.where(sql<boolean>`(action = ${action} or starts_with(action, ${`${action}.`}))`)
  if (subject) query = query.where('subject', '=', subject)
  if (beforeId) query = query.where('id', '<', beforeId)
  return await query.execute()
}
