import { randomInt } from 'node:crypto'
import { DelayedError, type Job } from 'bullmq'
import { type Api, type Catalog, withCallerKey } from '../../src/catalog/catalog.ts'
import type { ResponseClassCode } from '../../src/catalog/response-class.ts'
import type { Db } from '../../src/db/database.ts'
import {
  findProviderKey,
  type OwnedProviderKey,
  setProviderKeyStatus,
  setValidationFailure,
} from '../../src/db/provider-keys.ts'
import type { ProviderKey, ValidationFailureCode } from '../../src/db/schema.ts'
import { GatewayError } from '../../src/errors.ts'
import { withAnnouncement } from '../../src/limits/account-version.ts'
import { sendReply } from '../../src/queue/reply.ts'
import { NO_BODY, NO_TIMES } from '../../src/queue/reply-head.ts'
import { parseValidateKeyJob, TRY_AGAIN_MS } from '../../src/queue/validate-key-job.ts'
import { bucketOf, UNPROVEN_BUCKET, voterOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError } from '../errors/attempt-error.ts'
import { permitRequestOf } from '../permits/local-waiters.ts'
import { AttemptRecorder } from '../upstream/record-attempt.ts'
import { sendUnderPermit } from '../upstream/send-under-permit.ts'
import { buildWireRequest } from '../upstream/upstream-request.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Longest duration of a validation with its wait for a permit, milliseconds. */
const VALIDATE_MS_MAX = 30_000

/** Why nothing is known about the key. */
interface Undecided {
  code: ValidationFailureCode
  /** The upstream has accepted the key, and only the made-up key is left to try. */
  isAccepted?: true
  /** How long the cap or the breaker sends nothing for this key, milliseconds. */
  retryAfterMs?: number | undefined
}

/** The key was replaced or deleted while its validation waited for a permit. */
class ReplacedError extends Error {}

/** What the upstream said about the key, or why it said nothing. */
type Verdict = { status: 'valid' | 'invalid' } | Undecided

/**
 * Sends the upstream's cheapest request with a caller's key, on the cap of keys that are not
 * proven, or on the key's own. If the answer shows nothing of the key (down, limiting), the job
 * notes why and runs again. Nothing is sent to an upstream that operators paused or switched off.
 * @returns null: a return value would be kept in Redis
 * @throws DelayedError for the next time; Error if this worker lacks the secret that opens the key:
 *   another may have it
 */
export async function validateKey(deps: WorkerDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const { providerKeyId, group, reply, isAccepted } = parseValidateKeyJob(job.data)
  const { db, redis, log } = deps
  let accountId = ''
  try {
    const row = await findProviderKey(db, providerKeyId)
    accountId = row?.account_id ?? accountId
    if (!row) return null
    const shut = shutCode(deps.catalog.get(row.slug))
    const verdict = shut ? { code: shut } : await tryKey(deps, { row, group, jobId: job.id, isAccepted }, cancelled)
    if ('status' in verdict)
      await withAnnouncement({ redis, log }, [row.account_id], () => setStatus(db, row, verdict.status))
    else {
      const isFinal = shut !== undefined || verdict.code === 'KEY_NOT_CHECKABLE'
      await noteFailure(deps, { ...verdict, row, waitMs: isFinal ? undefined : nextWaitMs(job, verdict) }, job)
    }
  } catch (error) {
    if (!(error instanceof ReplacedError)) throw error
  } finally {
    if (reply) {
      const times = { ...NO_TIMES, attempts: 1 }
      const address = { id: reply.id, accountId, replyTo: reply.to }
      await sendReply(redis, address, { head: { id: reply.id, times }, body: NO_BODY })
    }
  }
  return null
}

function shutCode(api: Api | undefined): 'API_NOT_ENABLED' | 'API_PAUSED' | undefined {
  if (api?.isSwitchedOff) return 'API_NOT_ENABLED'
  return api?.pausedMode === 'refuse' ? 'API_PAUSED' : undefined
}

/**
 * Why no permit came in time. Workers do not poll for permits while operators hold the API's calls.
 */
function waitEndCode(catalog: Catalog, slug: string): 'API_PAUSED' | 'UPSTREAM_CAP_EXHAUSTED' {
  return catalog.get(slug)?.pausedMode === 'hold' ? 'API_PAUSED' : 'UPSTREAM_CAP_EXHAUSTED'
}

async function setStatus(db: Db, { id }: ProviderKey, status: 'valid' | 'invalid'): Promise<void> {
  await setProviderKeyStatus(db, id, status)
}

/**
 * Undefined after the last try. A try before the cap or the breaker lets a request through would be
 * in vain: a cap of one request an hour would get all tries in its first minutes.
 */
function nextWaitMs({ attemptsStarted }: Job, { retryAfterMs = 0 }: Undecided): number | undefined {
  const waitMs = TRY_AGAIN_MS[attemptsStarted - 1]
  return waitMs && Math.max(waitMs, retryAfterMs)
}

/** @throws DelayedError if the job runs again after `waitMs` */
async function noteFailure(
  { db, redis, log }: WorkerDeps,
  { row, code, isAccepted, waitMs }: Undecided & { row: OwnedProviderKey; waitMs: number | undefined },
  job: Job,
): Promise<void> {
  const nextAt = waitMs === undefined ? null : new Date(Date.now() + waitMs)
  const data = parseValidateKeyJob(job.data)
  const lastNextAt = data.nextAt === undefined ? null : new Date(data.nextAt)
  await withAnnouncement({ redis, log }, code === 'KEY_NOT_CHECKABLE' ? [row.account_id] : [], async () => {
    await setValidationFailure(db, row.id, { code, nextAt, lastNextAt })
  })
  log.info({ slug: row.slug, providerKeyId: row.id, code }, 'provider key could not be validated')
  if (!nextAt) return
  await job.updateData({ ...data, nextAt: nextAt.getTime(), ...(isAccepted && { isAccepted }) })
  await job.moveToDelayed(nextAt.getTime(), job.token)
  throw new DelayedError()
}

function queueEntry(row: OwnedProviderKey, group: string | undefined, jobId: string | undefined): WaitQueueEntry {
  const { id, account_id: accountId, slug, cap_scope: bucket, status } = row
  return {
    ...{ accountId, id: `validate-${jobId}`, isAsync: false, weight: 1, slug },
    ...(group === undefined || group === accountId ? {} : { group }),
    bucket: bucketOf({ providerKey: { id, bucket, ...(status === 'valid' ? {} : { isUnproven: true }) } }),
  }
}

async function tryKey(
  deps: WorkerDeps,
  {
    row,
    group,
    jobId,
    isAccepted,
  }: {
    row: OwnedProviderKey
    group: string | undefined
    jobId: string | undefined
    isAccepted: true | undefined
  },
  cancelled: AbortSignal,
): Promise<Verdict> {
  const known = deps.catalog.get(row.slug)
  if (!known) throw new Error(`this worker has not loaded the API ${row.slug}`)
  // This is not a fault of the key. Another worker may have the secret, or this worker after a
  // restart.
  if (!deps.providerKeys.hasSecretOf(row)) throw new Error('the secret of a provider key is not among ENCRYPTION_KEY')
  const api = withCallerKey(known)
  let key: string
  try {
    key = deps.providerKeys.open(row)
  } catch (error) {
    if (error instanceof GatewayError) return { status: 'invalid' }
    throw error
  }
  const entry = queueEntry(row, group, jobId)
  const timeout = AbortSignal.timeout(VALIDATE_MS_MAX)
  const check = {
    api,
    entry,
    keyId: row.id,
    endsAt: performance.now() + VALIDATE_MS_MAX,
    signal: AbortSignal.any([cancelled, timeout]),
  }
  // A later try need not send the key again.
  let accepted = isAccepted && { isAccepted }
  try {
    if (!accepted) {
      const verdict = await sendCheck(deps, check, key)
      const isConclusive =
        api.upstream.credential?.check?.isConclusive || 'code' in verdict || verdict.status === 'invalid'
      if (isConclusive) return verdict
    }
    accepted = { isAccepted: true }
    // On the cap of unproven keys, because the request counts for the gateway's address.
    const control = afterControl(
      await sendCheck(deps, { ...check, entry: { ...entry, bucket: UNPROVEN_BUCKET } }, madeUpKey(key)),
    )
    return 'code' in control ? { ...control, ...accepted } : control
  } catch (error) {
    if (error instanceof AttemptError) return { code: error.code, retryAfterMs: error.retryAfterMs, ...accepted }
    if (timeout.aborted && !cancelled.aborted) return { code: waitEndCode(deps.catalog, row.slug), ...accepted }
    throw error
  }
}

interface Check {
  api: Api
  entry: WaitQueueEntry
  /** Id of the key that is validated. */
  keyId: string
  endsAt: number
  signal: AbortSignal
}

/**
 * Sends the request that checks keys with one key.
 * @throws as `sendUnderPermit`, or ReplacedError
 */
async function sendCheck(
  deps: WorkerDeps,
  { api, entry, keyId, endsAt, signal }: Check,
  key: string,
): Promise<Verdict> {
  // Counted like a call of the key's owner, because the key may be the reason of a failure.
  const recorder = new AttemptRecorder(deps, {
    slug: api.slug,
    source: 'call',
    isPlain: true,
    voter: voterOf({ accountId: entry.accountId, group: entry.group }),
    concurrency: api.caps.concurrency,
  })
  const sending = {
    api,
    endpoint: undefined,
    currentKey: () => key,
    ensureCallable: async () => {
      if (!(await findProviderKey(deps.db, keyId))) throw new ReplacedError()
    },
    permitRequest: permitRequestOf(entry, deps.clock.now() + VALIDATE_MS_MAX),
    times: { ...NO_TIMES },
    progress: { reach: 'unsent' as const },
    remainingMs: () => endsAt - performance.now(),
    signal,
    recorder,
  }
  try {
    const request = api.upstream.credential?.check?.request ?? api.upstream.probe.request
    const wire = buildWireRequest(api, request, { extra: [], key, contact: deps.contact })
    const { responseClass } = await sendUnderPermit(deps, sending, () => wire)
    return verdictOf(responseClass?.code)
  } finally {
    recorder.flush()
  }
}

/** What the answer to a made-up key says about a key with which the same request succeeded. */
function afterControl(control: Verdict): Verdict {
  if (!('status' in control)) return control
  return control.status === 'invalid' ? { status: 'valid' } : { code: 'KEY_NOT_CHECKABLE' }
}

/** A made-up key of the same form. */
function madeUpKey(key: string): string {
  const random = (letters: string) => letters.charAt(randomInt(letters.length))
  const madeUp = key
    .replace(/[a-z]/g, () => random('abcdefghijklmnopqrstuvwxyz'))
    .replace(/[A-Z]/g, () => random('ABCDEFGHIJKLMNOPQRSTUVWXYZ'))
    .replace(/[0-9]/g, () => random('0123456789'))
  return madeUp === key ? `${key}x` : madeUp
}

function verdictOf(code: ResponseClassCode | undefined): Verdict {
  if (code === 'UPSTREAM_AUTH_FAILED') return { status: 'invalid' }
  // Answers that an upstream does not give if it refuses the key.
  if (!code || code === 'UPSTREAM_NOT_FOUND' || code === 'UPSTREAM_REJECTED') return { status: 'valid' }
  return { code }
}
