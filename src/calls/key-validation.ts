import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { missingForLiveCalls, shareGroupOf } from '../accounts/trust.ts'
import { liveCallsRefused } from '../admission/rights.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import { setValidationFailure } from '../db/provider-keys.ts'
import type { ProviderKey } from '../db/schema.ts'
import type { SessionUser } from '../db/sessions.ts'
import type { Log } from '../log.ts'
import type { CallQueues } from '../queue/call-queue.ts'
import type { ReplyInbox } from '../queue/reply.ts'
import { enqueueRevalidateKey, enqueueValidateKey, type ValidateKeyJob } from '../queue/validate-key-job.ts'
import { HOUR_MS, type ThrottleDeps, takeThrottle } from '../throttles/throttle.ts'

export interface ValidationDeps extends ThrottleDeps {
  config: Config
  catalog: Catalog
  db: Db
  queues: CallQueues
  replies: ReplyInbox
}

/**
 * Most validations per hour of keys for one API that an account, or all Free accounts of one
 * network, may cause by saving a key or by requesting a validation. Each validation is a request of
 * the shared cap.
 */
const VALIDATIONS_PER_HOUR = 10

/** How long a request waits for a validation, milliseconds. The validation itself continues. */
const VALIDATE_WAIT_MS = 10_000

/**
 * A validation is a request to the upstream, so an account that may not make live calls gets none.
 *
 * @throws GatewayError FORBIDDEN; RATE_LIMIT_EXCEEDED
 */
export async function takeValidation(deps: ValidationDeps, user: SessionUser, slug: string): Promise<void> {
  const { accounts, secrets } = deps.config
  const missing = missingForLiveCalls(user, accounts.signup)
  if (missing !== undefined) throw liveCallsRefused(missing)
  await takeThrottle(deps, {
    name: 'key-validate',
    subject: `${shareGroupOf(user, secrets.keyPepper)} ${slug}`,
    max: VALIDATIONS_PER_HOUR,
    windowMs: HOUR_MS,
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Wait before saving or validating more provider keys',
  })
}

/**
 * Queues the validation of a key that was just saved.
 *
 * @returns the key as its owner sees it meanwhile
 */
export async function validateSoon(
  deps: ValidationDeps,
  { user, log }: { user: SessionUser; log: Pick<Log, 'warn'> },
  saved: ProviderKey,
): Promise<ProviderKey> {
  const { db, catalog, queues } = deps
  const shown = isHeld(catalog, saved.slug) ? await noteHold(db, saved) : saved
  // The key is saved even if Redis is away. It can be validated later.
  await enqueueValidateKey(queues, saved.slug, validationOf(deps, user, saved.id)).catch((error) =>
    log.warn({ err: error, providerKeyId: saved.id }, 'failed to queue the validation of a key'),
  )
  return shown
}

/** Queues the validation of a key, and waits some time for its result if the API is not held. */
export async function validateAgain(deps: ValidationDeps, user: SessionUser, key: ProviderKey): Promise<void> {
  if (!isHeld(deps.catalog, key.slug)) return await validateNow(deps, user, key)
  await noteHold(deps.db, key)
  // Nobody waits for the result, so one job serves any number of requests.
  await enqueueRevalidateKey(deps.queues, key.slug, validationOf(deps, user, key.id))
}

async function validateNow(deps: ValidationDeps, user: SessionUser, { id, slug }: ProviderKey): Promise<void> {
  const { queues, replies } = deps
  const replyId = `validate_${randomUUID()}`
  const { reply, forget } = replies.awaitReply(replyId)
  const waited = new AbortController()
  try {
    const job = { ...validationOf(deps, user, id), reply: { id: replyId, to: replies.stream } }
    await enqueueValidateKey(queues, slug, job)
    await Promise.race([reply, delay(VALIDATE_WAIT_MS, undefined, { signal: waited.signal })])
  } finally {
    waited.abort()
    forget()
  }
}

/** Whether operators hold requests to the API. Validations then wait in the queue, like calls. */
function isHeld(catalog: Catalog, slug: string): boolean {
  return catalog.get(slug)?.pausedMode === 'hold'
}

/**
 * Records that a key will be checked when its API is resumed. Call it before the validation is
 * queued, so that it does not overwrite the result.
 */
async function noteHold(db: Db, key: ProviderKey): Promise<ProviderKey> {
  return (await setValidationFailure(db, key.id, { code: 'API_PAUSED', nextAt: new Date() })) ?? key
}

function validationOf({ config }: ValidationDeps, user: SessionUser, providerKeyId: string): ValidateKeyJob {
  return { v: 1, providerKeyId, group: shareGroupOf(user, config.secrets.keyPepper) }
}
