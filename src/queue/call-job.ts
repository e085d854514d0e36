import { randomUUID } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'

/** A new id of a call or a request: its kind, and a UUID without hyphens. */
export function createId(kind: 'call' | 'req'): string {
  return `${kind}_${randomUUID().replaceAll('-', '')}`
}

/** How a call reached the gateway, for the log of calls. */
const CallOrigin = Type.Object({
  /** `req_…`. For a call by MCP or in a batch: the id of the message or the batch. */
  requestId: Type.String(),
  via: Type.Enum(['call', 'batch', 'mcp']),
  /** The tool of a call by MCP. */
  tool: Type.Optional(Type.String()),
  /** The wait that admission forecast, or that a refusal quoted, milliseconds. */
  quotedMs: Type.Optional(Type.Number()),
  admissionMs: Type.Optional(Type.Number()),
})

export type CallOrigin = Static<typeof CallOrigin>

/**
 * One call as its job stores it: the contract between API nodes and workers. It is readable in
 * Redis and in the console, so it contains no secrets and names keys by id. The job of one call is
 * the call itself, with `v` 1; the job of several calls has `v` 2 (`SharedJob`). If old workers
 * cannot read a change of either form, the form needs a new number.
 */
const StoredCall = Type.Object({
  v: Type.Literal(1),
  id: Type.String({ pattern: '^call_[0-9a-f]{32}$' }),
  accountId: Type.String(),
  /** The group of accounts with which it shares scarce caps (`shareGroupOf`); absent: none. */
  group: Type.Optional(Type.String()),
  /** Absent for a session. */
  keyId: Type.Optional(Type.String()),
  /** The log-in, if the call has no key; absent from nodes of an earlier version. @until 0.4.0 */
  sessionId: Type.Optional(Type.String()),
  /** The version of the account under which admission read the caller's rights. */
  version: Type.Optional(Type.String()),
  /**
   * Id under which the limits of its key or connection are counted; absent if there are no limits.
   */
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
  /** Whether the answer is the upstream's JSON, unchanged, instead of `data`. */
  raw: Type.Boolean(),
  scenario: Type.Optional(Type.String()),
  /** The ticket under its stored name, with the weight. */
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
  /** The reason of `cacheOnly`; absent from nodes of an earlier version. @until 0.4.0 */
  cacheOnlyReason: Type.Optional(Type.Enum(['cap', 'share', 'closed', 'overloaded', 'down'])),
  /**
   * Whether the call is asynchronous: its caller need not wait, so its result is stored for GET
   * /v1/calls/{id}, and the worker ends the call.
   */
  isAsync: Type.Boolean(),
  /** For an asynchronous call: most bytes of all stored results of the account. */
  resultBytesMax: Type.Optional(Type.Integer()),
  /** For an own API: digest of the document with which the call was checked. */
  document: Type.Optional(Type.String()),
  traceparent: Type.Optional(Type.String()),
  /** For an asynchronous call: how it arrived, because its worker writes the log. */
  origin: Type.Optional(CallOrigin),
  /** Reply stream of the API node that waits. */
  replyTo: Type.String(),
  /**
   * Whether the node can read several replies from one entry; absent from nodes of an earlier
   * version.
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
 * One call. Its job stores some members under the names that workers of earlier versions read:
 * `toStored` maps these names. @until 0.4.0
 */
export interface CallJob extends Omit<StoredCall, keyof Renamed> {
  /**
   * When the limits were taken; it decides for which month and day the call counts. For a call of a
   * batch: when it got its lease. Time of Redis, milliseconds.
   */
  limitsAcquiredAt: number
  /**
   * Start of the wait for a worker, Redis time. Absent from nodes of an earlier version.
   * @until 0.4.0
   */
  admissionEndedAt?: number
  /** Absent if the call has no place in the wait queue. */
  ticket?: QueueTicket
  /**
   * If set, the call may only be answered from the store: why no request may be sent, and for how
   * long.
   */
  cacheOnly?: { reason: NonNullable<StoredCall['cacheOnlyReason']>; retryAfterMs: number }
  /**
   * The caller's own upstream key, and its cap bucket, which counts once the upstream has accepted
   * the key; absent if the gateway's key is used.
   */
  providerKey?: { id: string; bucket: string; isUnproven?: true }
}

type Renamed = Pick<
  StoredCall,
  'place' | 'providerKey' | 'enqueuedAt' | 'admittedAt' | 'cacheOnlyMs' | 'cacheOnlyReason'
>

interface QueueTicket {
  /** The virtual start time of the call in fair queueing. */
  tag: number
  /**
   * Whether an identical call is queued behind this call. If that call already leads and has not
   * begun its attempt, this call overtakes it.
   */
  isAhead?: true
}

export const SHARED_JOB_CALLS_MAX = 16

const VERSION_MAX = 2

/** Calls of any callers that arrived at a node together, each in the form of version 1. */
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
 * The part of a stored call that a worker needs to answer it with a failure. It is the same in
 * every version, so that a worker can answer calls that it cannot run.
 */
export type AnswerableCall = Pick<CallJob, (typeof OF_ANSWERABLE)[number] | 'limitsAcquiredAt'>

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

/** The stored calls of a job of any version. */
export function storedCalls(data: unknown): unknown[] {
  const { calls } = Object(data)
  return Array.isArray(calls) ? calls : [data]
}

/** The calls of a job of any version, for answering them. */
export function parseAnswerable(data: unknown): AnswerableCall[] {
  const known = storedCalls(data).filter((call) => answerable.Check(call))
  return known.map(({ enqueuedAt, ...call }) => ({ ...call, limitsAcquiredAt: enqueuedAt }))
}

/**
 * The calls of a job: one call (version 1) or several (version 2).
 *
 * @throws LaterVersionError, or Error if it is not a job of calls
 */
export function parseCalls(data: unknown): CallJob[] {
  const calls: CallJob[] = []
  for (const call of sharedJob.Check(data) ? data.calls : [data]) calls.push(fromStored(checkStored(call)))
  return calls
}

/** One call is stored as version 1, which workers of both versions can read. */
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
