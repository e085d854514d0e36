import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import type { CallQueues } from './call-queue.ts'

export const VALIDATE_KEY = 'validate-key'

/** Has a worker find out whether an upstream takes a caller's key. The key itself is in Postgres alone. */
export const ValidateKeyJob = Type.Object({
  v: Type.Literal(1),
  providerKeyId: Type.String(),
  /** Where someone waits for the result. */
  reply: Type.Optional(Type.Object({ id: Type.String(), to: Type.String() })),
})

export type ValidateKeyJob = Static<typeof ValidateKeyJob>

const validator = Compile(ValidateKeyJob)

/** @throws Error when the data are not a job of this version */
export function parseValidateKeyJob(data: unknown): ValidateKeyJob {
  if (validator.Check(data)) return data
  throw new Error('job data do not fit version 1 of validate-key')
}

/** Before calls: it is rare, takes one request on a cap of its own, and calls with the key may wait for its answer. */
const PRIORITY = 1

/** An upstream that is away gets another request: 10 s, 20 s, 40 s later. */
const ATTEMPTS = 4
const BACKOFF_MS = 10_000

export async function enqueueValidateKey(queues: CallQueues, slug: string, job: ValidateKeyJob): Promise<void> {
  await queues.of(slug).add(VALIDATE_KEY, parseValidateKeyJob(job), {
    priority: PRIORITY,
    attempts: ATTEMPTS,
    backoff: { type: 'exponential', delay: BACKOFF_MS },
  })
}
