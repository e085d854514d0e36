import type { PausedMode } from '../catalog/catalog.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import { lockUpstreamSettings, savePausedMode } from '../db/upstream-settings.ts'

/**
 * Notes that an upstream is paused, or with null that it is not, and writes the change down with
 * what was before.
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
