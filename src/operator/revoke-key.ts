import { isUuid } from '../accounts/uuid.ts'
import { findApiKey, revokeApiKey } from '../db/api-keys.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import { GatewayError } from '../errors.ts'

/**
 * Revokes a key of any account, for example a leaked key, and records it in the audit log.
 *
 * @returns the account against which the key counted; the caller must announce the change to all
 *   nodes
 * @throws GatewayError KEY_NOT_FOUND, also for a key that was revoked before
 */
export async function revokeKey(db: Db, id: string, actor: string): Promise<string> {
  return await db.transaction().execute(async (transaction) => {
    const key = isUuid(id) ? await findApiKey(transaction, id) : undefined
    const accountId = key && (await revokeApiKey(transaction, id))
    if (!key || accountId === undefined) {
      throw new GatewayError('KEY_NOT_FOUND', {
        message: 'No account has an active key with this id.',
        hint: 'Find its id with GET /v1/operator/users/{id}',
      })
    }
    const before = { accountId, environment: key.environment, label: key.label, lastFour: key.last_four }
    await insertAuditRecord(transaction, { actor, action: 'key.revoke', subject: id, before })
    return accountId
  })
}
