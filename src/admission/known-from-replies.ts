import { LRUCache } from 'lru-cache'
import type { CallJob } from '../queue/call-job.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import { bucketOf, type CapBucket } from '../queue/wait-queue-entry.ts'

/** Most remembered answers. Beyond it the least recently used answer is forgotten. */
const ANSWERS_MAX = 50_000

/**
 * For how long after a call's admission identical calls are expected to share its answer,
 * milliseconds.
 */
const EXPECTED_MS = 1_000

const CAPS_MAX = 10_000

/** How long the room in a reply is trusted, milliseconds. */
const TRUSTED_MS = 1_000

/** The part of the room that each API node uses, because other nodes know the same figure. */
const USED_PART = 0.5

type RepliedCall = Pick<CallJob, 'slug' | 'mode' | 'providerKey'>

/**
 * What replies have told an API node: which answers are stored or on their way, and which caps have
 * room for more requests. A call for such an answer or cap needs no ticket. If the node is wrong,
 * the worker joins the wait queue for the call: a wrong estimate exceeds no cap.
 */
export class KnownFromReplies {
  /** Until when an answer is fresh or expected, by its key; milliseconds of the monotonic clock. */
  readonly #answersUntil = new LRUCache<string, number>({ max: ANSWERS_MAX })
  readonly #rooms = new LRUCache<string, { requests: number; taken: number; until: number }>({ max: CAPS_MAX })

  hasAnswer(key: string): boolean {
    return (this.#answersUntil.get(key) ?? 0) > performance.now()
  }

  /** Records that a running call will store its answer. */
  expectAnswer(key: string): void {
    this.#answersUntil.set(key, Math.max(this.#answersUntil.get(key) ?? 0, performance.now() + EXPECTED_MS))
  }

  /**
   * Takes room for one request. Each node lets calls without a ticket use at most half of the room.
   * Calls of more than two nodes may need more room than there is; their workers join the wait
   * queue for them. Further calls of a node join at admission, which alone finds out that workers
   * are overloaded.
   *
   * @returns a function that gives the room back when the call ends; undefined if the call needs a
   *   ticket
   */
  takeRoom(slug: string, bucket: CapBucket): (() => void) | undefined {
    const room = this.#rooms.get(`${slug} ${bucket}`)
    if (!room || room.taken >= room.requests || performance.now() > room.until) return undefined
    room.taken += 1
    return () => {
      room.taken -= 1
    }
  }

  /**
   * Records what the reply to a call says. `freshMs` is how long the answer is fresh. A stored
   * UPSTREAM_NOT_FOUND is an answer too. After any other failure the node expects no answer.
   *
   * @param answerKey undefined if the answer is not shared
   */
  learn(
    call: RepliedCall,
    answerKey: string | undefined,
    { code, freshMs, room = 0, times }: Pick<ReplyHead, 'code' | 'freshMs' | 'room'> & { times: { attempts: number } },
  ): void {
    if (answerKey !== undefined) {
      if (freshMs !== undefined) this.#answersUntil.set(answerKey, performance.now() + freshMs)
      else if (code !== undefined) this.#answersUntil.delete(answerKey)
    }
    if (call.mode === 'test' || times.attempts === 0) return
    const name = `${call.slug} ${bucketOf(call)}`
    const known = this.#rooms.get(name) ?? { requests: 0, taken: 0, until: 0 }
    known.requests = Math.floor(room * USED_PART)
    known.until = performance.now() + TRUSTED_MS
    this.#rooms.set(name, known)
  }
}
