import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { AuditEntry } from './schema.ts'

export interface AuditRecord {
  /** Who made the change: the operator's name as given, and the address of the request. */
  actor: string
  /** What was done: `user.update`, `upstream.pause`. */
  action: string
  /** The id of the user, or the slug of the upstream. */
  subject: string
  /** The changed values before and after; never a key. */
  before?: object
  after?: object
}

/** Records a change. Pass the transaction of the change itself, if it has a transaction. */
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

/** Which changes to list. An absent member does not restrict the list. */
export interface AuditFilter {
  from?: Date | undefined
  /** The end of the time range, exclusive. */
  to?: Date | undefined
  /** A part of the actor, in any letter case. */
  actor?: string | undefined
  /**
   * An action such as `upstream.pause`, or the part before the dot for all actions of this kind.
   */
  action?: string | undefined
  subject?: string | undefined
  /** Lists only changes that came before the change with this id. */
  beforeId?: string | undefined
}

/** The latest matching changes, newest first. */
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
