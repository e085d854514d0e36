import { LRUCache } from 'lru-cache'
import { bucketOf, type CapBucket } from './bucket.ts'

/** How long a worker's word on the room of a cap is trusted, milliseconds. */
const TRUSTED_MS = 1_000

/** Part of the room that one API node uses: others know of it too. */
const USED_SHARE = 0.5

const CAPS_MAX = 10_000

interface RepliedCall {
  slug: string
  mode: 'live' | 'test'
  providerKey?: { id: string; bucket: string } | undefined
}

/**
 * Caps with room for more requests, as replies report it: a call for one of them needs no ticket. Where the node is
 * wrong, the worker joins the wait queue for the call: no belief of a node exceeds a cap.
 */
export class SpareRoom {
  readonly #passes = new LRUCache<string, { left: number; until: number }>({ max: CAPS_MAX })

  /** @returns whether a call may go without a ticket; it then uses one place */
  take(slug: string, bucket: CapBucket): boolean {
    const passes = this.#passes.get(`${slug} ${bucket}`)
    if (!passes || passes.left < 1 || performance.now() > passes.until) return false
    passes.left -= 1
    return true
  }

  learn(call: RepliedCall, { room = 0, times }: { room?: number; times: { attempts: number } }): void {
    if (call.mode === 'test' || times.attempts === 0) return
    const left = Math.floor(room * USED_SHARE)
    this.#passes.set(`${call.slug} ${bucketOf(call)}`, { left, until: performance.now() + TRUSTED_MS })
  }
}
