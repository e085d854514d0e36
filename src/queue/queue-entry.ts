import type { CallJob } from './call-job.ts'

/** BullMQ's lowest priority. */
export const PRIORITY_MAX = 2 ** 21 - 1

/** By what a wait queue knows a call. */
export interface QueueIdentity {
  callId: string
  accountId: string
  /** Accounts of a group count as one on scarce caps; an account without one counts alone. */
  shareGroup?: string | undefined
  /** Asynchronous calls leave room for those whose callers wait on a socket. */
  isAsync: boolean
}

export interface QueueEntry extends QueueIdentity {
  /** Share by plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  bucket: string
  /** Identical calls share one answer under this key; undefined where answers are not shared. */
  coalescedKey?: string | undefined
}

/** The member of Redis' sorted sets that stands for a call: `members.lua` reads it. */
export function memberOf({ accountId, callId, shareGroup, isAsync }: QueueIdentity): string {
  const group = shareGroup === undefined ? '' : `group:${shareGroup.replaceAll('|', '_')}|`
  return `${group}${accountId}|${isAsync ? '~' : ''}${callId}`
}

export function queueIdentity({
  id,
  accountId,
  group,
  isAsync,
}: Pick<CallJob, 'id' | 'accountId' | 'group' | 'isAsync'>): QueueIdentity {
  return { callId: id, accountId, shareGroup: group, isAsync }
}
