import { setTimeout as delay } from 'node:timers/promises'
import { type CallClient, type CallOutcome, callIdOf, type SendCall, type StoredCall } from './call-client.ts'

/** Identifier of the extension that allows a task as the answer to a tool call. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/**
 * How long to wait for a call before it becomes a task, or before the first progress notification,
 * seconds.
 */
const TASK_AFTER_SECONDS = 2
const PROGRESS_AFTER_SECONDS = 1

const POLL_MS_MIN = 500
const POLL_MS_MAX = 5_000

/** Interval of progress notifications, milliseconds. */
const PROGRESS_EVERY_MS = 1_000

/** Shortest interval between two looks at a call that may end at any moment, milliseconds. */
const LOOK_AGAIN_MS_MIN = 200

/**
 * If a call cannot be looked up, it is assumed to continue for so long, milliseconds. Redis may be
 * back by then.
 */
const UNSEEN_MS_MAX = 15_000

/** How long a closing node continues to report progress, milliseconds. */
const DRAINING_MS_MAX = 15_000

/** How long the result of a call is kept after its deadline, milliseconds. */
const RESULT_KEPT_MS = 900_000

/** A task as the extension defines it, without its result. */
export interface TaskState {
  taskId: string
  status: 'working' | 'completed' | 'cancelled'
  statusMessage: string
  createdAt: string
  lastUpdatedAt: string
  ttlMs: number
  pollIntervalMs: number
}

/** The forecast for a waiting call: calls before it, and when its request will probably be sent. */
interface Forecast {
  position?: number
  etaMs?: number
}

/**
 * Sends calls for a client that supports tasks. If a call has no answer within two seconds, it
 * continues as a task. If the client leaves or cancels its request before that, the call is
 * cancelled.
 */
export function sendAsTask(client: CallClient): SendCall {
  return async (path, parameters) => {
    const outcome = await sendForecast(client, { path, parameters, waitSeconds: TASK_AFTER_SECONDS })
    await cancelIfUnwanted(client, callIdOf(outcome))
    return outcome.status === 202 ? { ...outcome, task: await taskOf(client, outcome) } : outcome
  }
}

/**
 * Sends calls and reports their progress each second until they end. If the client leaves or
 * cancels its request, the call is cancelled.
 */
export function sendWithProgress(client: CallClient, report: (progress: Progress) => Promise<void>): SendCall {
  return async (path, parameters) => {
    const startedAt = performance.now()
    const outcome = await sendForecast(client, { path, parameters, waitSeconds: PROGRESS_AFTER_SECONDS })
    const callId = callIdOf(outcome)
    await cancelIfUnwanted(client, callId)
    if (outcome.status !== 202 || callId === undefined) return outcome
    return await followCall(client, report, { accepted: outcome, callId, startedAt })
  }
}

async function followCall(
  client: CallClient,
  report: (progress: Progress) => Promise<void>,
  { accepted, callId, startedAt }: { accepted: CallOutcome; callId: string; startedAt: number },
): Promise<CallOutcome> {
  let outcome = accepted
  let drainsUntil = Number.POSITIVE_INFINITY
  let seenAt = performance.now()
  let reportedAt = Number.NEGATIVE_INFINITY
  while (true) {
    await cancelIfUnwanted(client, callId)
    if (outcome.status !== 202) return outcome
    if (client.isDraining()) drainsUntil = Math.min(drainsUntil, performance.now() + DRAINING_MS_MAX)
    if (performance.now() >= drainsUntil) {
      // The node is closing. The client gets a retryable error while its connection is still open.
      await client.cancel(callId)
      return await client.look(callId)
    }
    const forecast = forecastOf(outcome)
    if (performance.now() - reportedAt >= PROGRESS_EVERY_MS) {
      reportedAt = performance.now()
      await report(progressOf(forecast, reportedAt - startedAt))
    }
    const pauseMs = Math.min(PROGRESS_EVERY_MS, Math.max(LOOK_AGAIN_MS_MIN, forecast.etaMs ?? PROGRESS_EVERY_MS))
    // The abort only ends the pause. The loop checks above why.
    await delay(pauseMs, undefined, { signal: client.unwanted }).catch(() => undefined)
    if (client.unwanted.aborted) continue
    const seen = await client.look(callId)
    if (!isUnseen(seen)) {
      outcome = seen
      seenAt = performance.now()
    } else if (performance.now() - seenAt > UNSEEN_MS_MAX) {
      await client.cancel(callId)
      return seen
    }
  }
}

/** The progress of a call. If its request is in flight, the total is unknown. */
function progressOf(forecast: Forecast, waitedMs: number): Progress {
  const { etaMs = 0 } = forecast
  const message = describeProgress(forecast)
  const progress = inTenths(waitedMs)
  return etaMs > 0 ? { progress, total: inTenths(waitedMs + etaMs), message } : { progress, message }
}

/** Seconds with one decimal. */
const inTenths = (ms: number): number => Math.round(ms / 100) / 10

/** Sends a batch, and reports how many of its calls have ended. */
export function sendBatchWithProgress(client: CallClient, report: (progress: Progress) => Promise<void>): SendCall {
  return async (path, parameters) => {
    const total = [parameters.calls].flat().length
    let reported = 0
    return await client.sendForLines(path, parameters, async (lines) => {
      // The last line is a summary, not a call.
      const progress = Math.min(lines, total)
      if (progress === reported) return
      reported = progress
      await report({ progress, total, message: `${progress} of ${total} calls have ended.` })
    })
  }
}

/**
 * Sends a call. If it continues, its place in the queue is looked up, because the 202 answer does
 * not have it.
 */
async function sendForecast(
  client: CallClient,
  { path, parameters, waitSeconds }: { path: string; parameters: Record<string, unknown>; waitSeconds: number },
): Promise<CallOutcome> {
  const outcome = await client.send(path, parameters, waitSeconds)
  const callId = callIdOf(outcome)
  if (outcome.status !== 202 || callId === undefined) return outcome
  const seen = await client.look(callId)
  // If the look-up failed, the call was accepted all the same and continues. With an error as its
  // end, the call would be charged and its answer lost.
  return isUnseen(seen) ? outcome : seen
}

/**
 * Whether the look-up failed, and not the call: the failure of a call has the form of the call
 * route. The header with the call's id does not show it, because Redis may fail between the reading
 * of the call and the reading of its result.
 */
export function isUnseen({ status, body }: Pick<CallOutcome, 'status' | 'body'>): boolean {
  return status >= 500 && Object(JSON.parse(body)).status !== 'error'
}

/**
 * The numbers of a progress notification: seconds waited and seconds expected until the request is
 * sent; or calls of a batch that have ended and all calls.
 */
export interface Progress {
  progress: number
  total?: number
  message: string
}

/** @throws the reason why nobody wants the call */
async function cancelIfUnwanted({ unwanted, cancel }: CallClient, callId: string | undefined): Promise<void> {
  if (!unwanted.aborted) return
  if (callId !== undefined) await cancel(callId)
  throw unwanted.reason
}

/** The task of a call that waits or runs. */
export async function taskOf(client: CallClient, outcome: CallOutcome): Promise<TaskState> {
  const callId = callIdOf(outcome) ?? ''
  const forecast = forecastOf(outcome)
  return {
    // Without Redis the times are unknown, but it is still a task, and the client will ask again.
    ...times(callId, await client.find(callId).catch(() => undefined)),
    status: 'working',
    statusMessage: describeProgress(forecast),
    pollIntervalMs: Math.round(Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, (forecast.etaMs ?? 0) / 2))),
  }
}

/** The task of a call that has ended. */
export function endedTask(call: StoredCall, isCancelled: boolean): TaskState {
  return {
    ...times(call.id, call),
    status: isCancelled ? 'cancelled' : 'completed',
    statusMessage: isCancelled ? 'The call was cancelled.' : 'The call has ended.',
    pollIntervalMs: POLL_MS_MIN,
  }
}

function times(taskId: string, call: StoredCall | undefined) {
  const now = Date.now()
  const createdAt = call?.limitsAcquiredAt ?? now
  return {
    taskId,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(Math.max(now, createdAt)).toISOString(),
    ttlMs: call ? Math.max(call.expiresAt, call.deadline) - createdAt : RESULT_KEPT_MS,
  }
}

function forecastOf({ body }: CallOutcome): Forecast {
  return JSON.parse(body)
}

function describeProgress({ position, etaMs }: Forecast): string {
  // Nobody knows how long a call waits for an operator who holds the API, or for a worker.
  if (etaMs === undefined)
    return position === undefined
      ? 'The call has not ended.'
      : `The call has place ${position + 1} in the queue and waits.`
  const seconds = Math.ceil(etaMs / 1_000)
  if (seconds === 0 && !position) return 'The call is under way.'
  const place =
    position === undefined ? 'The call waits in the queue' : `The call has place ${position + 1} in the queue`
  return `${place}; the gateway expects to run it in about ${seconds} s.`
}
