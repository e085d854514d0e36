import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import type { CallQueues } from './call-queue.ts'

export const VALIDATE_KEY = 'validate-key'

/**
 * Makes a worker find out whether an upstream accepts a caller's key. The job does not contain the
 * key, which is only in Postgres.
 */
export const ValidateKeyJob = Type.Object({
  v: Type.Literal(1),
  providerKeyId: Type.String(),
  /** The slug of its API; absent from processes of an earlier version. @until 0.4.0 */
  slug: Type.Optional(Type.String()),
  /** The group of accounts with which it shares caps, as for a call; absent: none. */
  group: Type.Optional(Type.String()),
  /** Set if someone waits for the result. */
  reply: Type.Optional(Type.Object({ id: Type.String(), to: Type.String() })),
  /** When the check will run again, as the key's owner sees it. Milliseconds since the epoch. */
  nextAt: Type.Optional(Type.Number()),
  /**
   * Set if the upstream has accepted the key and only the made-up key is left to try. The cap of
   * unproven keys may have room for a single request of a window.
   */
  isAccepted: Type.Optional(Type.Literal(true)),
})

export type ValidateKeyJob = Static<typeof ValidateKeyJob>

const validator = Compile(ValidateKeyJob)

/** @throws Error if the data are not a job of this version */
export function parseValidateKeyJob(data: unknown): ValidateKeyJob {
  if (validator.Check(data)) return data
  throw new Error('job data do not fit version 1 of validate-key')
}

/**
 * If the upstream could not decide about a key, how long until the next try at least, milliseconds.
 */
export const TRY_AGAIN_MS = [10_000, 20_000, 40_000]

/** Tries and pauses of the job, because another worker may run it if this worker cannot. */
const RETRIES = { attempts: 4, backoff: { type: 'exponential', delay: 10_000 } }

export async function enqueueValidateKey(queues: CallQueues, slug: string, job: ValidateKeyJob): Promise<void> {
  await queues.of(slug).add(VALIDATE_KEY, parseValidateKeyJob({ ...job, slug }), RETRIES)
}

/**
 * Queues a validation of a key that the upstream refused to a call. If the upstream refuses several
 * calls at once, they share one job, because one request tests the key for all.
 */
export async function enqueueRevalidateKey(queues: CallQueues, slug: string, job: ValidateKeyJob): Promise<void> {
  const options = { ...RETRIES, deduplication: { id: `revalidate-${job.providerKeyId}` } }
  await queues.of(slug).add(VALIDATE_KEY, parseValidateKeyJob({ ...job, slug }), options)
}
