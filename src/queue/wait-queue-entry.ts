import type { CallJob } from './call-job.ts'

/** For whom a cap counts requests: the gateway's own address, or one key of a caller. */
export type CapBucket = string

/** The bucket of all calls without a caller's own key. */
export const SHARED_BUCKET: CapBucket = 'shared'

/**
 * The bucket of all requests with callers' keys that the upstream has not accepted yet. Such a key
 * may be made up, and then the request counts for the gateway's address. So each request also takes
 * a permit of the shared cap.
 */
export const UNPROVEN_BUCKET: CapBucket = 'unproven'

export function bucketOf({ providerKey }: { providerKey?: CallJob['providerKey'] | undefined }): CapBucket {
  if (!providerKey) return SHARED_BUCKET
  return providerKey.isUnproven ? UNPROVEN_BUCKET : providerKey.bucket
}

/** The identity of a call in a wait queue. */
export interface WaitingCall extends Pick<CallJob, 'id' | 'accountId'> {
  /** Accounts of a group count as one on scarce caps; an account without a group counts alone. */
  group?: string | undefined
  /** Asynchronous calls leave room for calls whose callers wait on a socket. */
  isAsync: boolean
}

export interface WaitQueueEntry extends WaitingCall {
  /** Weight by plan. Twice the weight gets twice the calls. */
  weight: number
  slug: string
  bucket: CapBucket
  /** Key under which identical calls share one answer; undefined if answers are not shared. */
  coalescedKey?: string | undefined
}

/** The member of sorted sets that represents a call. `members.lua` parses it. */
export function memberOf({ accountId, id, group, isAsync }: WaitingCall): string {
  const ofGroup = group === undefined ? '' : `group:${group.replaceAll('|', '_')}|`
  return `${ofGroup}${accountId}|${isAsync ? '~' : ''}${id}`
}

/**
 * The account of a member's call, or its group. `shareOf` in `rules.lua` does the same for scarce
 * caps.
 */
export function groupOrAccountOf(member: string): string {
  return member.slice(0, member.indexOf('|'))
}

/**
 * The owner of a vote on the health of an upstream: the widest network around an account (because
 * one person may have many accounts in it), or an account with a share of its own.
 */
export function voterOf({ accountId, group }: { accountId: string; group?: string | undefined }): string {
  return group?.split('/')[0] ?? accountId
}

/** How a call waits for the cap of its API or of the fallback source that `slug` names. */
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
