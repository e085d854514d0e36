import type { PausedMode } from '../catalog/catalog.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import { lockUpstreamSettings, savePausedMode } from '../db/upstream-settings.ts'

/**
 * Pauses an upstream, or resumes it if `mode` is null. Records the states before and after in the
 * audit log.
 */
export function changePause(
  db: Db,
  slug: string,
  { mode, actor }: { mode: PausedMode | null; actor: string },
): Promise<void> {
  return db.transaction().execute(async (transaction) => {
    const row = await lockUpstreamSettings(transaction, slug)
    await savePausedMode(transaction, slug, mode)
    await insertAuditRecord(transaction, {
      actor,
      action: mode === null ? 'upstream.resume' : 'upstream.pause',
      subject: slug,
      before: { paused: row?.paused_mode ?? null },
      after: { paused: mode },
    })
  })
}
