import type { FastifyRequest } from 'fastify'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { OperatorRole } from './actor.ts'

/**
 * Records a log-in to the console. Fails open, because operators need the console most while
 * Postgres is away. The log always gets a line.
 */
export async function recordLogin(
  db: Db,
  request: FastifyRequest,
  { actor, ...after }: { actor: string; role: OperatorRole; subject?: string },
): Promise<void> {
  request.log.info({ actor }, 'operator logged in')
  await insertAuditRecord(db, { actor, action: 'console.login', subject: 'console', after }).catch((error) =>
    request.log.warn({ err: error, actor }, 'failed to write a log-in to the audit log'),
  )
}
