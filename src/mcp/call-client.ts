import type { FastifyInstance, FastifyReply, FastifyRequest, InjectOptions } from 'fastify'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { onBehalfOf } from '../http/request/caller-socket.ts'
import { type AsyncCall, readAsyncCall } from '../queue/async-call.ts'
import { accountKeys } from '../redis/keys.ts'
import type { MessageSender, RunningTools } from './running-tools.ts'
import type { TaskState } from './tasks.ts'

/**
 * Makes one call with the caller's own credential. It goes through the proxy route, so that every
 * check is made there, and only once.
 */
export type SendCall = (path: string, parameters: Record<string, unknown>) => Promise<CallOutcome>

/** The answer of the proxy route or of the route for asynchronous calls. */
export interface CallOutcome {
  status: number
  headers: Record<string, unknown>
  body: string
  /** Set if the call continues as a task of the client. */
  task?: TaskState
}

/** The gateway's own routes as a tool uses them, with the credential of the tool's caller. */
export interface CallClient {
  /** If there is no answer after `waitSeconds`, the result is 202 and the call continues. */
  send: (path: string, parameters: Record<string, unknown>, waitSeconds?: number) => Promise<CallOutcome>
  /**
   * For a route that answers in lines: calls back with the number of lines so far, each time more
   * of the answer arrives. Other answers have no lines.
   */
  sendForLines: (
    path: string,
    parameters: Record<string, unknown>,
    onLines: (count: number) => Promise<void>,
  ) => Promise<CallOutcome>
  /** `GET /v1/calls/{id}`. */
  look: (callId: string) => Promise<CallOutcome>
  /** `DELETE /v1/calls/{id}`. */
  cancel: (callId: string) => Promise<CallOutcome>
  /** The stored state of an asynchronous call of the caller's account. */
  find: (callId: string) => Promise<StoredCall | undefined>
  /** Runs a tool for a request, which its client may cancel. */
  run: <T>(requestId: unknown, tool: () => Promise<T>) => Promise<T>
  /** Cancels another request of this sender. */
  cancelRequest: (requestId: unknown) => Promise<void>
  /** Whether this node is closing: it accepts nothing new and finishes what it can. */
  isDraining: () => boolean
  /** Aborted when the client closes the connection or the stream of the answer. */
  left: AbortSignal
  /** The same, or the client cancels the request. */
  unwanted: AbortSignal
}

export interface StoredCall extends AsyncCall {
  /** When the call and its result are deleted, in the time of Redis, milliseconds. */
  expiresAt: number
}

/** Headers of the caller that are copied to its calls. */
const CARRIED = ['x-api-key', 'authorization', 'x-gateway-mode', 'x-gateway-scenario', 'traceparent'] as const

/** Opens the gateway's own routes for the sender of a request. */
export function openCallClient(
  app: Pick<FastifyInstance, 'inject'>,
  context: Pick<Context, 'redis' | 'clock' | 'isDraining'>,
  {
    request,
    message,
    left,
    sender,
    runningTools,
    onAnswer,
  }: {
    request: Pick<FastifyRequest, 'id' | 'headers' | 'ip'>
    /** The message to which the calls belong. */
    message: unknown
    left: AbortSignal
    sender: MessageSender
    runningTools: RunningTools
    /** Called with each answer that a tool reads. */
    onAnswer: (outcome: CallOutcome) => void
  },
): CallClient {
  const headers = Object.fromEntries(
    CARRIED.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])),
  )
  const unwanted = new AbortController()
  const leave = () => unwanted.abort(left.reason)
  if (left.aborted) leave()
  else left.addEventListener('abort', leave, { once: true })
  const caller = { id: request.id, tool: toolOf(message), left: unwanted.signal }
  const answerTo = (options: InjectOptions) => {
    const injected = { ...options, headers: { ...headers, ...options.headers }, remoteAddress: request.ip }
    // The await must be inside, because `inject` only sends when it is awaited.
    return onBehalfOf(caller, async () => await app.inject(injected))
  }
  const inject = async (options: InjectOptions): Promise<CallOutcome> => {
    const { statusCode, headers: answered, body } = await answerTo(options)
    const outcome = { status: statusCode, headers: answered, body }
    onAnswer(outcome)
    return outcome
  }
  return {
    send: (url, payload, waitSeconds) =>
      inject({
        method: 'POST',
        url,
        payload,
        headers: waitSeconds === undefined ? {} : { prefer: `wait=${waitSeconds}` },
      }),
    sendForLines: async (url, payload, onLines) => {
      const answer = await answerTo({ method: 'POST', url, payload, payloadAsStream: true })
      let [body, lines] = ['', 0]
      for await (const chunk of answer.stream().setEncoding('utf8')) {
        body += chunk
        lines += chunk.split('\n').length - 1
        if (lines > 0) await onLines(lines)
      }
      const outcome = { status: answer.statusCode, headers: answer.headers, body }
      onAnswer(outcome)
      return outcome
    },
    look: (callId) => inject({ method: 'GET', url: `/v1/calls/${callId}` }),
    cancel: (callId) => inject({ method: 'DELETE', url: `/v1/calls/${callId}` }),
    find: async (callId) => {
      const { accountId } = sender
      const [call, leftMs] = await Promise.all([
        readAsyncCall(context.redis, { id: callId, accountId }),
        context.redis.pttl(accountKeys.call(accountId, callId)),
      ])
      return call && { ...call, expiresAt: context.clock.now() + leftMs }
    },
    run: (requestId, tool) => runningTools.run({ sender, requestId }, unwanted, tool),
    cancelRequest: (requestId) => runningTools.cancel(sender, requestId),
    isDraining: () => context.isDraining,
    left,
    unwanted: unwanted.signal,
  }
}

/** The tool that a message calls. If the tool does not exist, there will be no calls. */
function toolOf(message: unknown): string | undefined {
  const name: unknown = Object(Object(message).params).name
  return typeof name === 'string' ? name : undefined
}

/** A signal that is aborted when the client closes the connection or the stream of the answer. */
export function whenClientLeaves({ raw }: FastifyReply): AbortSignal {
  const left = new AbortController()
  const onClose = () => {
    if (!raw.writableFinished) left.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The caller left.' }))
  }
  // The client may have left while its message was read.
  if (raw.destroyed) onClose()
  else raw.once('close', onClose)
  return left.signal
}

/**
 * The id of the call to which an answer belongs; undefined if the call was refused before it got an
 * id.
 */
export function callIdOf({ headers }: CallOutcome): string | undefined {
  const id = headers['x-call-id']
  return typeof id === 'string' ? id : undefined
}
