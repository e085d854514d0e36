/** The id of a permit, which names its entry in the log and its lease. */
export type PermitId = string

/** The result of a poll. */
export interface AcquireResult {
  granted: Map<string, PermitId>
  /** Permits ahead, for later calls: as many as requested, or fewer. */
  ahead: PermitId[]
  /** Tags of the waiters that joined the queue. */
  joined: Map<string, number>
  /**
   * Refused waiters by member. `hadPlace`: the queue had accepted the call, and evicted it because
   * it cannot get a permit before its deadline.
   */
  refused: Map<string, QueueRefusal & { hadPlace: boolean }>
  /** Room for more requests; 0 on scarce caps, for which every call has to queue. */
  room: number
  /**
   * Time until the rates let the first waiter go that got no permit, milliseconds; 0 if the waiter
   * waits for another request to end.
   */
  retryInMs: number
}

/** How the wait queue accepted a call, and when its permit is expected. */
export interface QueueAdmission {
  /** Start tag in virtual time; the queue serves the lowest tag first. */
  tag: number
  etaMs: number
  /**
   * - `own`: the call has a place.
   * - `ahead`: it has a place, and an identical call has a place behind it.
   * - `follower`: it has no place, because an identical call has a place or runs. The call that
   *   runs first sends the request.
   */
  kind: 'own' | 'ahead' | 'follower'
}

/** Why a call got no place in the wait queue, and when to try again. */
export interface QueueRefusal {
  reason: 'cap' | 'share' | 'closed' | 'overloaded'
  retryAfterMs: number
}

/** The present state of a cap. */
export interface CapState {
  /**
   * Calls in the queue, or calls before the call in question (or before the call whose answer it
   * shares); -1 if neither is in the queue.
   */
  ahead: number
  nextSlotMs: number
  underWay: number
  free: number
  /**
   * How long the upstream itself accepts no requests, as far as the gateway believes it; 0 if it
   * accepts them.
   */
  limitedMs: number
  /** For each rate, in the order of the cap. */
  left: number[]
}

type AcquireReply = [
  decision: 'ok',
  ...[retryInMs: number, room: number],
  permits: string[],
  joined: string[],
  refusals: (string | number)[],
  ahead: PermitId[],
]

type Refusal = [member: string, reason: QueueRefusal['reason'], retryAfterMs: number, hadPlace: 0 | 1]

type JoinReply = [decision: QueueRefusal['reason'] | QueueAdmission['kind'], ...[tag: string, etaMs: number]]

/** Parses the reply of `acquire.lua`. */
export function readAcquired(reply: unknown[]): AcquireResult {
  const [, retryInMs, room, permits, joined, refusals, ahead] = reply as AcquireReply
  const granted = new Map(tuples<[string, PermitId]>(permits, 2))
  const tags = new Map<string, number>()
  for (const [member, tag] of tuples<[string, string]>(joined, 2)) tags.set(member, Number(tag))
  const refused: AcquireResult['refused'] = new Map()
  for (const [member, reason, retryAfterMs, hadPlace] of tuples<Refusal>(refusals, 4)) {
    refused.set(member, { reason, retryAfterMs, hadPlace: hadPlace === 1 })
  }
  return { granted, ahead, joined: tags, refused, room, retryInMs }
}

/** Parses the reply of `read.lua`. */
export function readState([
  ahead = 0,
  nextSlotMs = 0,
  underWay = 0,
  free = 0,
  limitedMs = 0,
  ...left
]: number[]): CapState {
  return { ahead, nextSlotMs, underWay, free, limitedMs, left }
}

/** Parses the reply of `join-queue.lua`, for each call. */
export function readJoined([, ...replies]: unknown[]): (QueueAdmission | QueueRefusal)[] {
  return (replies as JoinReply[]).map(readJoin)
}

function readJoin([decision, tag, etaMs]: JoinReply): QueueAdmission | QueueRefusal {
  const isAdmitted = decision === 'own' || decision === 'follower' || decision === 'ahead'
  return isAdmitted ? { tag: Number(tag), etaMs, kind: decision } : { reason: decision, retryAfterMs: etaMs }
}

/** Splits a flat list into parts of `size` values each. */
function* tuples<Tuple extends unknown[]>(values: unknown[], size: Tuple['length']): Generator<Tuple> {
  for (let index = 0; index < values.length; index += size) yield values.slice(index, index + size) as Tuple
}
