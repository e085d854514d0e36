import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'

/**
 * The contract between API nodes and workers: one call as a job. It is readable in Redis and on the queue dashboard, so
 * it holds no secret: keys are named by id. A change that old workers cannot read gets a new `v`.
 */
export const CallJob = Type.Object({
  v: Type.Literal(1),
  /** `call_…`, also the job's id. */
  id: Type.String({ pattern: '^call_[0-9a-f]{32}$' }),
  accountId: Type.String(),
  /** Name under which the account shares scarce caps with others (`shareGroupOf`); absent: it counts alone. */
  group: Type.Optional(Type.String()),
  /** Id of the API key; absent for a session. */
  keyId: Type.Optional(Type.String()),
  /** The caller's own upstream key, by id, and the name of its cap; absent where the gateway's own way is taken. */
  providerKey: Type.Optional(Type.Object({ id: Type.String(), scope: Type.String() })),
  /** A test call is answered from the recorded example and never reaches the upstream. */
  mode: Type.Enum(['live', 'test']),
  slug: Type.String(),
  endpoint: Type.String(),
  parameters: Type.Record(Type.String(), Type.Unknown()),
  /** Undeclared parameters, forwarded as given. */
  extra: Type.Array(Type.Tuple([Type.String(), Type.String()])),
  /** The upstream's JSON as it came instead of `data`. */
  raw: Type.Boolean(),
  /** What a test call is to run into. */
  scenario: Type.Optional(Type.String()),
  /** The call's place in the upstream's wait queue; absent where it needs no permit of its own. */
  place: Type.Optional(Type.Object({ tag: Type.Number(), weight: Type.Integer() })),
  /** Answer from the cache or not at all: the cap is used up for this long, milliseconds. */
  cacheOnlyMs: Type.Optional(Type.Integer()),
  /** The result is kept for GET /v1/calls/{id}, for the caller may not be waiting; the worker then settles the call. */
  isAsync: Type.Boolean(),
  /** Bytes that all kept results of the account may take; of an asynchronous call. */
  resultBytesMax: Type.Optional(Type.Integer()),
  /** W3C trace context of the HTTP request, where calls are traced. */
  traceparent: Type.Optional(Type.String()),
  /** Reply stream of the API node that waits. */
  replyTo: Type.String(),
  /** That node reads several replies from one entry of its stream; absent from nodes of an earlier version. */
  bundledReplies: Type.Optional(Type.Boolean()),
  /** When the call was put in the queue, and when its caller stops waiting: Redis time, milliseconds. */
  enqueuedAt: Type.Integer(),
  deadline: Type.Integer(),
})

export type CallJob = Static<typeof CallJob>

/** Most calls that travel as one job. */
export const BATCH_CALLS_MAX = 16

/** Calls that reached a node together while nobody waited for their upstream: one job. */
const CallBatch = Type.Object({
  v: Type.Literal(2),
  calls: Type.Array(CallJob, { minItems: 1, maxItems: BATCH_CALLS_MAX }),
})

const oneCall = Compile(CallJob)
const batchOfCalls = Compile(CallBatch)

/**
 * Reads the data of a job with one call.
 *
 * @throws Error when it is not a call of this version
 */
export function parseCallJob(data: unknown): CallJob {
  if (oneCall.Check(data)) return data
  const [first] = oneCall.Errors(data)
  throw new Error(`job data do not fit version 1: ${first?.instancePath ?? ''} ${first?.message ?? ''}`)
}

/**
 * The calls of a job: one (version 1), or several (version 2).
 *
 * @throws Error when it is a job of neither version
 */
export function parseCalls(data: unknown): CallJob[] {
  return batchOfCalls.Check(data) ? data.calls : [parseCallJob(data)]
}

/** The data of a job with these calls: version 1 for one, which workers of both versions read. */
export function toJobData(calls: CallJob[]): unknown {
  const [first] = calls
  return calls.length === 1 ? parseCallJob(first) : { v: 2, calls: calls.map(parseCallJob) }
}
