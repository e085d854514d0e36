import { setImmediate as turn } from 'node:timers/promises'
import { hasEnded } from '../../src/db/api-keys.ts'
import { isCurrentVersion } from '../../src/limits/account-version.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { WorkerDeps } from './worker-deps.ts'

/**
 * A call that is this young and did not wait has the rights that admission read, milliseconds. Most
 * calls are, and cost no command of Redis.
 */
const YOUNG_MS = 250

/**
 * Cancels a call whose key or connection was revoked, or whose account was disabled, while the call
 * waited. Call it before each request. If another call shares the request, the request goes on. If
 * the rights changed and cannot be read, the call fails.
 */
export async function cancelIfRevoked(
  { redis, db, clock, running }: Pick<WorkerDeps, 'redis' | 'db' | 'clock' | 'running'>,
  { id, accountId, keyId, version, limitsAcquiredAt }: CallJob,
  { hasWaited }: { hasWaited: boolean },
): Promise<void> {
  // The call has a session, or comes from a node of an earlier version. @until 0.4.0
  if (keyId === undefined || version === undefined) return
  if (!hasWaited && clock.now() - limitsAcquiredAt < YOUNG_MS) return
  if (await isCurrentVersion(redis, accountId, version)) return
  if (!(await hasEnded(db, keyId))) return
  running.cancel(id)
  // The request that the call shared learns only after this turn that the call has left it.
  await turn()
}
