import type { Db } from '../src/db/database.ts'
import { forgetNextValidation, listOverdueValidations } from '../src/db/provider-keys.ts'
import type { Log } from '../src/log.ts'
import type { CallQueues } from '../src/queue/call-queue.ts'
import { enqueueRevalidateKey } from '../src/queue/validate-key-job.ts'

/**
 * Queues the validations of provider keys that should have run minutes ago, because Redis has lost
 * their jobs. Otherwise the keys would stay unvalidated although their owners are told that the
 * gateway checks them again. The jobs have no share group: the cap of unproven keys bounds them.
 *
 * @throws what Postgres or Redis throws; the next look does the rest
 */
export async function queueOverdueValidations({
  db,
  queues,
  log,
}: {
  db: Db
  queues: CallQueues
  log: Log
}): Promise<void> {
  for (const key of await listOverdueValidations(db)) {
    await enqueueRevalidateKey(queues, key.slug, { v: 1, providerKeyId: key.id })
    await forgetNextValidation(db, key)
    log.info({ slug: key.slug, providerKeyId: key.id }, 'a validation that Redis has lost is queued again')
  }
}
