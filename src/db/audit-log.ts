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

/** Writes a change down; in the transaction of the change itself where there is one. */
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

/** The latest changes, newest first. */
export function listAuditRecords(db: Db, countMax: number): Promise<AuditEntry[]> {
  return db.selectFrom('audit_log').selectAll().orderBy('id', 'desc').limit(countMax).execute()
}
