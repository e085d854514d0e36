import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import type { CallQueues } from './call-queue.ts'

export const VALIDATE_KEY = 'validate-key'

/**
 * Has a worker find out whether an upstream takes a caller's key. The key itself is in Postgres
 * alone.
 */
export const ValidateKeyJob = Type.Object({
  v: Type.Literal(1),
  providerKeyId: Type.String(),
  /** Its API; absent from processes of an earlier version. @until 0.4.0 */
  slug: Type.Optional(Type.String()),
  /** Shares caps with the accounts of this group, as of a call; absent: with none. */
  group: Type.Optional(Type.String()),
  /** Set if someone waits for the result. */
  reply: Type.Optional(Type.Object({ id: Type.String(), to: Type.String() })),
  /** When the check should run again, as the key's owner reads it. Milliseconds since the epoch. */
  nextAt: Type.Optional(Type.Number()),
})

export type ValidateKeyJob = Static<typeof ValidateKeyJob>

const validator = Compile(ValidateKeyJob)

/** @throws Error if the data are not a job of this version */
export function parseValidateKeyJob(data: unknown): ValidateKeyJob {
  if (validator.Check(data)) return data
  throw new Error('job data do not fit version 1 of validate-key')
}

/**
 * After how long a key is tried again whose upstream could not say anything of it, milliseconds.
 */
export const TRY_AGAIN_MS = [10_000, 20_000, 40_000]

/** For a worker that cannot run the job, if another worker may. */
const RETRIES = { attempts: 4, backoff: { type: 'exponential', delay: 10_000 } }

export async function enqueueValidateKey(queues: CallQueues, slug: string, job: ValidateKeyJob): Promise<void> {
  await queues.of(slug).add(VALIDATE_KEY, parseValidateKeyJob({ ...job, slug }), RETRIES)
}

/**
 * For a key that the upstream refused to a call: calls at once are refused together, and one
 * request tells about all.
 */
export async function enqueueRevalidateKey(queues: CallQueues, slug: string, job: ValidateKeyJob): Promise<void> {
  const options = { ...RETRIES, deduplication: { id: `revalidate-${job.providerKeyId}` } }
  await queues.of(slug).add(VALIDATE_KEY, parseValidateKeyJob({ ...job, slug }), options)
}
