import { LRUCache } from 'lru-cache'
import { bucketOf, type CapBucket } from './bucket.ts'

/** How long a worker's word on the room of a cap is trusted, milliseconds. */
const TRUSTED_MS = 1_000

/** Part of the room that one API node uses: others have heard of it too. */
const USED_SHARE = 0.5

const CAPS_MAX = 10_000

/** A call whose reply tells of its cap's room. */
interface RepliedCall {
  slug: string
  mode: 'live' | 'test'
  providerKey?: { id: string; bucket: string } | undefined
}

/**
 * The caps that have room for more requests than there are, as replies tell. A call for one of them needs no ticket: nothing
 * waits there, so nothing has to be in order. Where the node is wrong, the worker gets no permit for the call and joins the
 * wait queue for it: a cap is never exceeded by what a node believes.
 */
export class SpareRoom {
  readonly #passes = new LRUCache<string, { left: number; until: number }>({ max: CAPS_MAX })

  /** Whether a call may go without a ticket; it takes one of the places. */
  take(slug: string, bucket: CapBucket): boolean {
    const passes = this.#passes.get(`${slug} ${bucket}`)
    if (!passes || passes.left < 1 || performance.now() > passes.until) return false
    passes.left -= 1
    return true
  }

  /** What a reply tells: how many more requests there was room for when its permit was granted. */
  learn(call: RepliedCall, { room = 0, times }: { room?: number; times: { attempts: number } }): void {
    if (call.mode === 'test' || times.attempts === 0) return
    const left = Math.floor(room * USED_SHARE)
    this.#passes.set(`${call.slug} ${bucketOf(call)}`, { left, until: performance.now() + TRUSTED_MS })
  }
}
