import type { CallJob } from './call-job.ts'

/** BullMQ's lowest priority. */
export const PRIORITY_MAX = 2 ** 21 - 1

export interface QueueMember {
  callId: string
  accountId: string
  /** Accounts of a group count as one on scarce caps; an account without one counts alone. */
  shareGroup?: string | undefined
  /** Asynchronous calls leave room for those whose callers wait on a socket. */
  isAsync: boolean
}

export interface QueueEntry extends QueueMember {
  /** Share by plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  bucket: string
  /** Identical calls share one answer under this key; undefined where answers are not shared. */
  coalescedKey?: string | undefined
}

/** The call's member in the queue and among the waiters: `members.lua` reads it. */
export function memberOf({ accountId, callId, shareGroup, isAsync }: QueueMember): string {
  const group = shareGroup === undefined ? '' : `group:${shareGroup.replaceAll('|', '_')}|`
  return `${group}${accountId}|${isAsync ? '~' : ''}${callId}`
}

export function queueMember({
  id,
  accountId,
  group,
  isAsync,
}: Pick<CallJob, 'id' | 'accountId' | 'group' | 'isAsync'>): QueueMember {
  return { callId: id, accountId, shareGroup: group, isAsync }
}
