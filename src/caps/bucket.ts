import type { CallJob } from '../queue/call-job.ts'

/** What a cap is counted for: the address from which the gateway calls, or one key of a caller. */
export type CapBucket = string

/** The bucket of all calls without a key of the caller's own. */
export const SHARED_BUCKET: CapBucket = 'shared'

/**
 * The bucket of all requests with keys of callers' own that the upstream has not taken yet. A key
 * may be made up, and the request counts for the gateway's address then, so each takes a permit of
 * the shared cap as well.
 */
export const UNPROVEN_BUCKET: CapBucket = 'unproven'

export function bucketOf({ providerKey }: { providerKey?: CallJob['providerKey'] | undefined }): CapBucket {
  if (!providerKey) return SHARED_BUCKET
  return providerKey.isUnproven ? UNPROVEN_BUCKET : providerKey.bucket
}
