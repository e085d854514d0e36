import type { CallJob } from './call-job.ts'

/** Whose call it is, as far as shares of a cap are concerned. */
export interface QueueMember {
  callId: string
  accountId: string
  /** Accounts of one group count as one on scarce caps; an account without one counts alone. */
  shareGroup?: string | undefined
  /** Asynchronous calls leave room for those whose callers wait on a socket. */
  isAsync: boolean
}

/** A call in the wait queue of a cap. */
export interface QueueEntry extends QueueMember {
  /** Share by plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  /** Which cap of the upstream: the shared one, or that of a key. */
  bucket: string
  /** Key under which identical calls share one answer; undefined where answers are not shared. */
  coalescedKey?: string | undefined
}

/** The call's member in the queue and among the waiters: `members.lua` reads it. */
export function memberOf({ accountId, callId, shareGroup, isAsync }: QueueMember): string {
  const group = shareGroup === undefined ? '' : `group:${shareGroup.replaceAll('|', '_')}|`
  return `${group}${accountId}|${isAsync ? '~' : ''}${callId}`
}

/** Whose call a job is. */
export function queueMember({
  id,
  accountId,
  group,
  isAsync,
}: Pick<CallJob, 'id' | 'accountId' | 'group' | 'isAsync'>): QueueMember {
  return { callId: id, accountId, shareGroup: group, isAsync }
}
