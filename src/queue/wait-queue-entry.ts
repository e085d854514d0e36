import type { CallJob } from './call-job.ts'

/** By what a wait queue knows a call. */
export interface WaitQueueIdentity {
  callId: string
  accountId: string
  /** Accounts of a group count as one on scarce caps; an account without one counts alone. */
  shareGroup?: string | undefined
  /** Asynchronous calls leave room for those whose callers wait on a socket. */
  isAsync: boolean
}

export interface WaitQueueEntry extends WaitQueueIdentity {
  /** By plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  bucket: string
  /** Identical calls share one answer under this key; undefined if answers are not shared. */
  coalescedKey?: string | undefined
}

/** The member of Redis' sorted sets that stands for a call: `members.lua` reads it. */
export function memberOf({ accountId, callId, shareGroup, isAsync }: WaitQueueIdentity): string {
  const group = shareGroup === undefined ? '' : `group:${shareGroup.replaceAll('|', '_')}|`
  return `${group}${accountId}|${isAsync ? '~' : ''}${callId}`
}

/**
 * The account of a member's call, or its group. `shareOf` of `rules.lua` is the same for scarce
 * caps.
 */
export function groupOrAccountOf(member: string): string {
  return member.slice(0, member.indexOf('|'))
}

export function waitQueueIdentity({
  id,
  accountId,
  group,
  isAsync,
}: Pick<CallJob, 'id' | 'accountId' | 'group' | 'isAsync'>): WaitQueueIdentity {
  return { callId: id, accountId, shareGroup: group, isAsync }
}
