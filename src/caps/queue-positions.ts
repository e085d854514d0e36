import { LRUCache } from 'lru-cache'
import type { WaitQueueEntry } from '../queue/wait-queue-entry.ts'
import type { UpstreamCaps } from './upstream-caps.ts'

/** How long a position is reused for further polls of its call, milliseconds. */
const POSITION_TTL_MS = 500

const CALLS_MAX = 10_000

export interface QueuePosition {
  /** Calls before it, or before the call whose answer it shares; -1 if neither is in the queue. */
  ahead: number
  /** When its permit is expected, milliseconds from now. */
  etaMs: number
}

/**
 * The positions of queued calls, for callers that poll. Planning a queue takes Redis up to a
 * millisecond, in which it serves nobody else, and polls are free and unlimited. So a node reads
 * the position of each call at most twice a second.
 */
export class QueuePositions {
  readonly #positions: LRUCache<string, QueuePosition & { readAt: number }, WaitQueueEntry>

  constructor(caps: Pick<UpstreamCaps, 'of'>) {
    this.#positions = new LRUCache({
      max: CALLS_MAX,
      ttl: POSITION_TTL_MS,
      // If look-ups of other calls evict a look-up from the cache, its callers still get the
      // position.
      ignoreFetchAbort: true,
      fetchMethod: async (_id, _known, { context: call }) => {
        const { ahead, nextSlotMs } = await caps.of(call, call.bucket).read(call)
        return { ahead, etaMs: nextSlotMs, readAt: performance.now() }
      },
    })
  }

  /** @throws what Redis throws */
  async of(call: WaitQueueEntry): Promise<QueuePosition> {
    const { ahead, etaMs, readAt } = await this.#positions.forceFetch(call.id, { context: call })
    return { ahead, etaMs: Math.max(0, Math.round(etaMs - (performance.now() - readAt))) }
  }
}
