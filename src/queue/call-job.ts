import { randomFillSync } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'

const ID_BYTES = 16

/** For the next ids. Made together, an id costs an eighth of a UUID that loses its hyphens. */
const randomBytes = Buffer.alloc(256 * ID_BYTES)
let randomBytesUsed = randomBytes.length

/** A new id of a call or of a request: its kind and 32 hexadecimal digits, as a UUID has. */
export function createId(kind: 'call' | 'req'): string {
  if (randomBytesUsed === randomBytes.length) {
    randomFillSync(randomBytes)
    randomBytesUsed = 0
  }
  const start = randomBytesUsed
  randomBytesUsed += ID_BYTES
  return `${kind}_${randomBytes.toString('hex', start, randomBytesUsed)}`
}

/** How a call reached the gateway, for the log of calls. */
const CallOrigin = Type.Object({
  /** `req_…`; for a call that came by MCP or in a batch, the id of the message or of the batch. */
  requestId: Type.String(),
  via: Type.Enum(['call', 'batch', 'mcp']),
  /** Of a call by MCP. */
  tool: Type.Optional(Type.String()),
  /** The wait that admission forecast, or that a refusal quoted, milliseconds. */
  quotedMs: Type.Optional(Type.Number()),
  admissionMs: Type.Optional(Type.Number()),
})

export type CallOrigin = Static<typeof CallOrigin>

/**
 * One call as its job stores it, the contract between API nodes and workers. It is readable in
 * Redis and in the console: no secret in it, keys by id. A job of one call is the call itself, with
 * `v` 1; a job of several calls has `v` 2 (`SharedJob`). A change of either that old workers cannot
 * read gets a new number.
 */
const StoredCall = Type.Object({
  v: Type.Literal(1),
  id: Type.String({ pattern: '^call_[0-9a-f]{32}$' }),
  accountId: Type.String(),
  /** Shares scarce caps with the accounts of this group (`shareGroupOf`); absent: with none. */
  group: Type.Optional(Type.String()),
  /** Absent for a session. */
  keyId: Type.Optional(Type.String()),
  /** Under which the limits of its key or connection are counted; absent if nobody set any. */
  credentialId: Type.Optional(Type.String()),
  providerKey: Type.Optional(
    Type.Object({ id: Type.String(), scope: Type.String(), isUnproven: Type.Optional(Type.Literal(true)) }),
  ),
  /** A test call is answered from the recorded example. */
  mode: Type.Enum(['live', 'test']),
  slug: Type.String(),
  endpoint: Type.String(),
  parameters: Type.Record(Type.String(), Type.Unknown()),
  /** Undeclared parameters, forwarded as given. */
  extra: Type.Array(Type.Tuple([Type.String(), Type.String()])),
  /** The upstream's JSON as it came instead of `data`. */
  raw: Type.Boolean(),
  scenario: Type.Optional(Type.String()),
  /** The ticket, under its stored name, with the weight. */
  place: Type.Optional(
    Type.Object({
      tag: Type.Number(),
      weight: Type.Integer(),
      isAhead: Type.Optional(Type.Literal(true)),
    }),
  ),
  /**
   * Weight by plan, with which the call waits for its cap. Nodes of an earlier version leave it out
   * if the call has a ticket. @until 0.4.0
   */
  weight: Type.Optional(Type.Integer()),
  /** `retryAfterMs` of `cacheOnly`. */
  cacheOnlyMs: Type.Optional(Type.Integer()),
  /** Its reason; absent from nodes of an earlier version. @until 0.4.0 */
  cacheOnlyReason: Type.Optional(Type.Enum(['cap', 'share', 'closed', 'overloaded', 'down'])),
  /**
   * The result is kept for GET /v1/calls/{id}, because the caller need not wait; the worker then
   * ends the call.
   */
  isAsync: Type.Boolean(),
  /** Bytes that all kept results of the account may take; of an asynchronous call. */
  resultBytesMax: Type.Optional(Type.Integer()),
  /** Digest of the document that the call was checked by; of an own API. */
  document: Type.Optional(Type.String()),
  traceparent: Type.Optional(Type.String()),
  /** Of an asynchronous call, whose end its worker writes down. */
  origin: Type.Optional(CallOrigin),
  /** Reply stream of the API node that waits. */
  replyTo: Type.String(),
  /**
   * The node reads several replies from one entry; absent from nodes of an earlier version.
   * @until 0.4.0
   */
  bundledReplies: Type.Optional(Type.Boolean()),
  /** When the limits were taken, under its stored name. */
  enqueuedAt: Type.Integer(),
  admittedAt: Type.Optional(Type.Integer()),
  deadline: Type.Integer(),
})

type StoredCall = Static<typeof StoredCall>

/**
 * Stored under the names that workers of earlier versions read: `toStored` maps them. @until 0.4.0
 */
export interface CallJob extends Omit<StoredCall, keyof Renamed> {
  /**
   * When the limits were taken: decides the month and the day for which the call counts. Of a
   * batch's call, when it got its lease. Redis time, milliseconds.
   */
  limitsAcquiredAt: number
  /**
   * Start of the wait for a worker, Redis time. Absent from nodes of an earlier version.
   * @until 0.4.0
   */
  admissionEndedAt?: number
  /** Absent if the call has no place in the wait queue. */
  ticket?: QueueTicket
  /** A stored answer or none: why no request may be sent for the call, and for how long. */
  cacheOnly?: { reason: NonNullable<StoredCall['cacheOnlyReason']>; retryAfterMs: number }
  /**
   * The caller's own upstream key and the bucket of its cap, which holds once the upstream took the
   * key; absent if the gateway's key is used.
   */
  providerKey?: { id: string; bucket: string; isUnproven?: true }
}

type Renamed = Pick<
  StoredCall,
  'place' | 'providerKey' | 'enqueuedAt' | 'admittedAt' | 'cacheOnlyMs' | 'cacheOnlyReason'
>

export interface QueueTicket {
  /** The virtual start time of the call under fair queueing. */
  tag: number
  /**
   * An identical call is queued behind this call. If the identical call leads already and has not
   * begun its attempt, this call overtakes it.
   */
  isAhead?: true
}

export const SHARED_JOB_CALLS_MAX = 16

const VERSION_MAX = 2

/** Calls of any callers that reached a node together, each as version 1 has it. */
const SharedJob = Type.Object({
  v: Type.Literal(2),
  calls: Type.Array(Type.Unknown(), { minItems: 1, maxItems: SHARED_JOB_CALLS_MAX }),
})

const oneCall = Compile(StoredCall)
const sharedJob = Compile(SharedJob)

const OF_ANSWERABLE = [
  ...(['id', 'accountId', 'mode', 'slug', 'endpoint', 'isAsync', 'keyId', 'credentialId'] as const),
  ...(['resultBytesMax', 'origin', 'replyTo', 'bundledReplies', 'deadline'] as const),
] as const

/**
 * The part of a stored call by which a worker can answer it with a failure. It is the same in every
 * version, so a worker can answer calls that it cannot run.
 */
export type AnswerableCall = Pick<CallJob, (typeof OF_ANSWERABLE)[number] | 'limitsAcquiredAt' | 'providerKey'>

const answerable = Compile(Type.Pick(StoredCall, [...OF_ANSWERABLE, 'enqueuedAt']))

export class LaterVersionError extends Error {}

/** @throws Error if it is not a call of this version */
function checkStored(data: unknown): StoredCall {
  if (oneCall.Check(data)) return data
  const { v } = Object(data)
  if (v > VERSION_MAX) throw new LaterVersionError(`job data do not fit version ${VERSION_MAX}: they are of ${v}`)
  const [, [first]] = oneCall.Errors(data)
  throw new Error(`job data do not fit version 1: ${first?.instancePath ?? ''} ${first?.message ?? ''}`)
}

/** What is stored of each call of a job, of any version. */
export function storedCalls(data: unknown): unknown[] {
  const { calls } = Object(data)
  return Array.isArray(calls) ? calls : [data]
}

/** Calls of a job of any version, to answer them. Their `providerKey` is left out. */
export function parseAnswerable(data: unknown): AnswerableCall[] {
  const known = storedCalls(data).filter((call) => answerable.Check(call))
  type Known = (typeof known)[number] & { providerKey?: unknown }
  return known.map(({ providerKey: _providerKey, enqueuedAt, ...call }: Known) => ({
    ...call,
    limitsAcquiredAt: enqueuedAt,
  }))
}

/**
 * The calls of a job: one (version 1), or several (version 2).
 *
 * @throws LaterVersionError, or Error for no job of a call
 */
export function parseCalls(data: unknown): CallJob[] {
  const calls: CallJob[] = []
  for (const call of sharedJob.Check(data) ? data.calls : [data]) calls.push(fromStored(checkStored(call)))
  return calls
}

/** Version 1 for one call, which workers of both versions read. */
export function toJobData(calls: CallJob[]): unknown {
  const stored = calls.map(toStored)
  return stored.length === 1 ? stored[0] : { v: 2, calls: stored }
}

function toStored(call: CallJob): StoredCall {
  const { limitsAcquiredAt, admissionEndedAt, ticket, providerKey, cacheOnly, ...same } = call
  return {
    ...same,
    enqueuedAt: limitsAcquiredAt,
    ...(admissionEndedAt === undefined ? {} : { admittedAt: admissionEndedAt }),
    ...(ticket && { place: { ...ticket, weight: same.weight ?? 1 } }),
    ...(providerKey && { providerKey: { ...keyOf(providerKey), scope: providerKey.bucket } }),
    ...(cacheOnly && { cacheOnlyMs: cacheOnly.retryAfterMs, cacheOnlyReason: cacheOnly.reason }),
  }
}

function fromStored(call: StoredCall): CallJob {
  const { enqueuedAt, admittedAt, place, providerKey, cacheOnlyMs, cacheOnlyReason = 'cap', ...same } = call
  return {
    ...same,
    limitsAcquiredAt: enqueuedAt,
    ...(admittedAt === undefined ? {} : { admissionEndedAt: admittedAt }),
    ...(place && { weight: place.weight, ticket: { tag: place.tag, ...(place.isAhead && { isAhead: true }) } }),
    ...(providerKey && { providerKey: { ...keyOf(providerKey), bucket: providerKey.scope } }),
    ...(cacheOnlyMs === undefined ? {} : { cacheOnly: { reason: cacheOnlyReason, retryAfterMs: cacheOnlyMs } }),
  }
}

function keyOf({ id, isUnproven }: { id: string; isUnproven?: true }): { id: string; isUnproven?: true } {
  return { id, ...(isUnproven && { isUnproven }) }
}
