import type { CallJob } from './call-job.ts'

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

/** By what a wait queue knows a call. */
export interface WaitingCall extends Pick<CallJob, 'id' | 'accountId'> {
  /** Accounts of a group count as one on scarce caps; an account without one counts alone. */
  group?: string | undefined
  /** Asynchronous calls leave room for calls whose callers wait on a socket. */
  isAsync: boolean
}

export interface WaitQueueEntry extends WaitingCall {
  /** By plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  bucket: CapBucket
  /** Identical calls share one answer under this key; undefined if answers are not shared. */
  coalescedKey?: string | undefined
}

/** The member of Redis' sorted sets that stands for a call: `members.lua` reads it. */
export function memberOf({ accountId, id, group, isAsync }: WaitingCall): string {
  const ofGroup = group === undefined ? '' : `group:${group.replaceAll('|', '_')}|`
  return `${ofGroup}${accountId}|${isAsync ? '~' : ''}${id}`
}

/**
 * The account of a member's call, or its group. `shareOf` of `rules.lua` is the same for scarce
 * caps.
 */
export function groupOrAccountOf(member: string): string {
  return member.slice(0, member.indexOf('|'))
}

/**
 * Who has a vote on the health of an upstream: the widest network around an account (one person may
 * have many in it), or an account with a share of its own.
 */
export function voterOf({ accountId, group }: { accountId: string; group?: string | undefined }): string {
  return group?.split('/')[0] ?? accountId
}

/** How a call waits for the cap of its API, or of the fallback source that `slug` names. */
export function waitQueueEntry(
  call: WaitingCall & Pick<CallJob, 'weight' | 'slug' | 'providerKey'>,
  {
    slug = call.slug,
    bucket = bucketOf(call),
    coalescedKey,
  }: Partial<Pick<WaitQueueEntry, 'slug' | 'bucket' | 'coalescedKey'>> = {},
): WaitQueueEntry {
  const { id, accountId, group, isAsync, weight = 1 } = call
  return { id, accountId, group, isAsync, weight, slug, bucket, coalescedKey }
}
