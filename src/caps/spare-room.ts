import { LRUCache } from 'lru-cache'
import type { CallJob } from '../queue/call-job.ts'
import { bucketOf, type CapBucket } from '../queue/wait-queue-entry.ts'

/** How long the room in a reply is trusted, milliseconds. */
const TRUSTED_MS = 1_000

/** The part of the room that each API node uses, because other nodes know the same figure. */
const USED_PART = 0.5

const CAPS_MAX = 10_000

type RepliedCall = Pick<CallJob, 'slug' | 'mode'> & Partial<Pick<CallJob, 'providerKey'>>

/**
 * Caps with room for more requests, as replies report it: a call for such a cap needs no ticket. If
 * the node is wrong, the worker joins the wait queue for the call: a wrong estimate exceeds no cap.
 * Each node lets calls without a ticket use at most half of the room. Calls of more than two nodes
 * may need more room than there is; their workers join the wait queue for them. Further calls of a
 * node join at admission, which alone finds out that workers are overloaded.
 */
export class SpareRoom {
  readonly #rooms = new LRUCache<string, { requests: number; taken: number; until: number }>({ max: CAPS_MAX })

  /**
   * Takes room for one request.
   *
   * @returns a function that gives the room back when the call ends; undefined if the call needs a
   *   ticket
   */
  take(slug: string, bucket: CapBucket): (() => void) | undefined {
    const room = this.#rooms.get(`${slug} ${bucket}`)
    if (!room || room.taken >= room.requests || performance.now() > room.until) return undefined
    room.taken += 1
    return () => {
      room.taken -= 1
    }
  }

  learn(call: RepliedCall, { room = 0, times }: { room?: number; times: { attempts: number } }): void {
    if (call.mode === 'test' || times.attempts === 0) return
    const name = `${call.slug} ${bucketOf(call)}`
    const known = this.#rooms.get(name) ?? { requests: 0, taken: 0, until: 0 }
    known.requests = Math.floor(room * USED_PART)
    known.until = performance.now() + TRUSTED_MS
    this.#rooms.set(name, known)
  }
}
