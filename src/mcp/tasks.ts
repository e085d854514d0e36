import { setTimeout as delay } from 'node:timers/promises'
import type { AsyncCall } from '../queue/async-call.ts'
import { type CallClient, type CallOutcome, callIdOf, type SendCall } from './call-client.ts'

/** Identifier of the extension by which a tool's call may be answered with a task. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/**
 * How long a call is waited for before it becomes a task, and before the first word on its
 * progress, seconds.
 */
const TASK_AFTER_SECONDS = 2
const PROGRESS_AFTER_SECONDS = 1

const POLL_MS_MIN = 500
const POLL_MS_MAX = 5_000

/** How often the progress of a call is reported, milliseconds. */
const PROGRESS_EVERY_MS = 1_000

/** How soon a call is looked at again that may be answered any moment, milliseconds. */
const LOOK_AGAIN_MS_MIN = 200

/**
 * If a call cannot be looked up, it is taken to go on as before for so long, milliseconds. Redis
 * may be back by then.
 */
const UNSEEN_MS_MAX = 15_000

/** How long a node that is to end still reports the progress of a call, milliseconds. */
const DRAINING_MS_MAX = 15_000

/** How long after its deadline the result of a call is kept, milliseconds. */
const RESULT_KEPT_MS = 900_000

/** A task as the extension describes it, without its result. */
export interface TaskState {
  taskId: string
  status: 'working' | 'completed' | 'cancelled'
  statusMessage: string
  createdAt: string
  lastUpdatedAt: string
  ttlMs: number
  pollIntervalMs: number
}

/**
 * What is known of a call that waits: calls before it, and when its request is expected to be sent.
 */
interface Forecast {
  position?: number
  etaMs?: number
}

/**
 * Sends calls for a client that takes tasks: a call that is not answered within two seconds goes on
 * as a task. A client that leaves before it is answered has cancelled the call.
 */
export function sendAsTask(client: CallClient): SendCall {
  return async (path, parameters) => {
    const outcome = await sendForecast(client, { path, parameters, waitSeconds: TASK_AFTER_SECONDS })
    await cancelIfLeft(client, callIdOf(outcome))
    return outcome.status === 202 ? { ...outcome, task: await taskOf(client, outcome) } : outcome
  }
}

/**
 * Sends calls whose progress is reported each second until they are answered. A client that leaves
 * cancels the call, and so does a client that says so in a message of its own, as clients of
 * earlier revisions do.
 */
export function sendWithProgress(
  client: CallClient,
  report: (progress: Progress) => Promise<void>,
  requestId: unknown,
): SendCall {
  return async (path, parameters) => {
    const startedAt = performance.now()
    const outcome = await sendForecast(client, { path, parameters, waitSeconds: PROGRESS_AFTER_SECONDS })
    const callId = callIdOf(outcome)
    await cancelIfLeft(client, callId)
    if (outcome.status !== 202 || callId === undefined) return outcome
    const reportWaiting = async (progress: Progress): Promise<void> => {
      // Fails open: without Redis the call cannot be cancelled, and ends as it does.
      await client.toolCalls.add(requestId, callId).catch(() => undefined)
      await report(progress)
    }
    try {
      return await followCall(client, reportWaiting, { accepted: outcome, callId, startedAt })
    } finally {
      await client.toolCalls.remove(requestId, callId).catch(() => undefined)
    }
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
    await cancelIfLeft(client, callId)
    if (outcome.status !== 202) return outcome
    if (client.isDraining()) drainsUntil = Math.min(drainsUntil, performance.now() + DRAINING_MS_MAX)
    if (performance.now() >= drainsUntil) {
      // The client gets an error that it may retry, while there is still a connection to answer on.
      await client.cancel(callId)
      return await client.look(callId)
    }
    const forecast = forecastOf(outcome)
    if (performance.now() - reportedAt >= PROGRESS_EVERY_MS) {
      reportedAt = performance.now()
      await report(progressOf(forecast, reportedAt - startedAt))
    }
    const pauseMs = Math.min(PROGRESS_EVERY_MS, Math.max(LOOK_AGAIN_MS_MIN, forecast.etaMs ?? PROGRESS_EVERY_MS))
    // A client that leaves is noticed above.
    await delay(pauseMs, undefined, { signal: client.left }).catch(() => undefined)
    if (client.left.aborted) continue
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

/** Of a call whose request is under way nobody knows the end: it has no total. */
function progressOf(forecast: Forecast, waitedMs: number): Progress {
  const { etaMs = 0 } = forecast
  const message = describeProgress(forecast)
  const progress = inTenths(waitedMs)
  return etaMs > 0 ? { progress, total: inTenths(waitedMs + etaMs), message } : { progress, message }
}

/** Seconds with one digit after the point. */
const inTenths = (ms: number): number => Math.round(ms / 100) / 10

/** Sends a batch, and reports how many of its calls have ended. */
export function sendBatchWithProgress(client: CallClient, report: (progress: Progress) => Promise<void>): SendCall {
  return async (path, parameters) => {
    const total = [parameters.calls].flat().length
    let reported = 0
    return await client.sendForLines(path, parameters, async (lines) => {
      // The last line is about all of them.
      const progress = Math.min(lines, total)
      if (progress === reported) return
      reported = progress
      await report({ progress, total, message: `${progress} of ${total} calls have ended.` })
    })
  }
}

/**
 * Sends a call. If it goes on, its place in the queue is looked up: the answer that accepted it has
 * none.
 */
async function sendForecast(
  client: CallClient,
  { path, parameters, waitSeconds }: { path: string; parameters: Record<string, unknown>; waitSeconds: number },
): Promise<CallOutcome> {
  const outcome = await client.send(path, parameters, waitSeconds)
  const callId = callIdOf(outcome)
  if (outcome.status !== 202 || callId === undefined) return outcome
  const seen = await client.look(callId)
  // It was accepted and goes on: were this its end, it would be charged and its answer lost.
  return isUnseen(seen) ? outcome : seen
}

/**
 * Whether the look-up failed, and not the call: what a call ended with has the form of its own
 * route. The call's id is no sign, because Redis may be lost between the reading of the call and
 * the reading of its result.
 */
export function isUnseen({ status, body }: Pick<CallOutcome, 'status' | 'body'>): boolean {
  return status >= 500 && Object(JSON.parse(body)).status !== 'error'
}

/**
 * What a progress notification says besides its token: seconds waited, and expected until the
 * request is sent; or calls of a batch that have ended, and all of them.
 */
export interface Progress {
  progress: number
  total?: number
  message: string
}

/** @throws the reason for which the client left */
async function cancelIfLeft({ left, cancel }: CallClient, callId: string | undefined): Promise<void> {
  if (!left.aborted) return
  if (callId !== undefined) await cancel(callId)
  throw left.reason
}

/** The state of a call that waits or runs. */
export async function taskOf(client: CallClient, outcome: CallOutcome): Promise<TaskState> {
  const callId = callIdOf(outcome) ?? ''
  const forecast = forecastOf(outcome)
  return {
    // Without Redis it is still a task, and the client asks again.
    ...times(callId, await client.find(callId).catch(() => undefined)),
    status: 'working',
    statusMessage: describeProgress(forecast),
    pollIntervalMs: Math.round(Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, (forecast.etaMs ?? 0) / 2))),
  }
}

/** The state of a call that has ended. */
export function endedTask(call: AsyncCall, isCancelled: boolean): TaskState {
  return {
    ...times(call.id, call),
    status: isCancelled ? 'cancelled' : 'completed',
    statusMessage: isCancelled ? 'The call was cancelled.' : 'The call has ended.',
    pollIntervalMs: POLL_MS_MIN,
  }
}

function times(taskId: string, call: AsyncCall | undefined) {
  const now = Date.now()
  const createdAt = call?.limitsAcquiredAt ?? now
  return {
    taskId,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(Math.max(now, createdAt)).toISOString(),
    ttlMs: (call?.deadline ?? now) - createdAt + RESULT_KEPT_MS,
  }
}

function forecastOf({ body }: CallOutcome): Forecast {
  return JSON.parse(body)
}

function describeProgress({ position, etaMs = 0 }: Forecast): string {
  const seconds = Math.ceil(etaMs / 1_000)
  if (seconds === 0 && !position) return 'The call is under way.'
  const place =
    position === undefined ? 'The call waits in the queue' : `The call has place ${position + 1} in the queue`
  return `${place}; its turn is expected in about ${seconds} s.`
}
