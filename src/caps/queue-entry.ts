import type { CapBucket } from './bucket.ts'

/** A call in the wait queue of a cap. */
export interface QueueEntry {
  callId: string
  accountId: string
  /** Share by plan: twice the weight, twice the calls. */
  weight: number
  slug: string
  bucket: CapBucket
  /** Key under which identical calls share one answer; undefined where answers are not shared. */
  flightKey?: string | undefined
}

/** The call's member in the queue and among the waiters; it begins with the account, by which shares are counted. */
export function memberOf({ accountId, callId }: Pick<QueueEntry, 'accountId' | 'callId'>): string {
  return `${accountId}|${callId}`
}
