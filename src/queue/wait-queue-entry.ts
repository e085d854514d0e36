import type { CallJob } from './call-job.ts'

/** By what a wait queue knows a call. */
export interface WaitingCall extends Pick<CallJob, 'id' | 'accountId'> {
  /** Accounts of a group count as one on scarce caps; an account without one counts alone. */
  group?: string | undefined
  /** Asynchronous calls leave room for those whose callers wait on a socket. */
  isAsync: boolean
}

export interface WaitQueueEntry extends WaitingCall {
  /** By plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  bucket: string
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

/** How a call waits for the cap of its API, or of the fallback source that `slug` names. */
export function waitQueueEntry(
  { id, accountId, group, isAsync, weight = 1, slug }: WaitingCall & Pick<CallJob, 'weight' | 'slug'>,
  wait: Pick<WaitQueueEntry, 'bucket' | 'coalescedKey'> & { slug?: string },
): WaitQueueEntry {
  return { id, accountId, group, isAsync, weight, slug, ...wait }
}
