import type { CallJob } from '../queue/call-job.ts'

/** What a cap is counted for: the address from which the gateway calls, or one key of a caller. */
export type CapBucket = string

/** The bucket of all calls without a key of the caller's own. */
export const SHARED_BUCKET: CapBucket = 'shared'

export function bucketOf({ providerKey }: { providerKey?: CallJob['providerKey'] | undefined }): CapBucket {
  return providerKey?.bucket ?? SHARED_BUCKET
}
