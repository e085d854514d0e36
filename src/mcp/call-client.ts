import type { FastifyInstance, FastifyReply, FastifyRequest, InjectOptions } from 'fastify'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { onBehalfOf } from '../http/request/caller-socket.ts'
import { type AsyncCall, readAsyncCall } from '../queue/async-call.ts'
import type { TaskState } from './tasks.ts'
import { type MessageSender, ToolCalls, toolOf } from './tool-calls.ts'

/**
 * One call under the caller's own credential: goes through the proxy route, so that every check is
 * made there, once.
 */
export type SendCall = (path: string, parameters: Record<string, unknown>) => Promise<CallOutcome>

/** The answer of the proxy route, or of the route of asynchronous calls. */
export interface CallOutcome {
  status: number
  headers: Record<string, unknown>
  body: string
  /** Set if the call goes on as a task of the client. */
  task?: TaskState
}

/** The gateway's own routes as a tool uses them, under the credential of whoever calls the tool. */
export interface CallClient {
  /** With `waitSeconds` the answer is 202 when there is none by then, and the call goes on. */
  send: (path: string, parameters: Record<string, unknown>, waitSeconds?: number) => Promise<CallOutcome>
  /**
   * For a route that answers in lines: says how many have come, whenever some have. Other answers
   * have no lines.
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
  /** What is remembered of an asynchronous call of the caller's account. */
  find: (callId: string) => Promise<AsyncCall | undefined>
  /** The calls that requests of this sender wait for. */
  toolCalls: ToolCalls
  /** Whether this node is to end: it takes nothing new and finishes what it can. */
  isDraining: () => boolean
  /** Aborted when the client closes the connection or its answer's stream. */
  left: AbortSignal
}

/** Headers of the caller that its calls carry too. */
const CARRIED = ['x-api-key', 'authorization', 'x-gateway-mode', 'x-gateway-scenario', 'traceparent'] as const

/** The gateway's own routes, for the sender of a request. */
export function openCallClient(
  app: Pick<FastifyInstance, 'inject'>,
  context: Pick<Context, 'redis' | 'health' | 'isDraining'>,
  {
    request,
    message,
    left,
    sender,
    onAnswer,
  }: {
    request: Pick<FastifyRequest, 'id' | 'headers' | 'ip' | 'raw'>
    /** The message of the request that the calls belong to. */
    message: unknown
    left: AbortSignal
    sender: MessageSender
    /** Is called with each answer, which the tool reads. */
    onAnswer: (outcome: CallOutcome) => void
  },
): CallClient {
  const headers = Object.fromEntries(
    CARRIED.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])),
  )
  const answerTo = (options: InjectOptions) => {
    const injected = { ...options, headers: { ...headers, ...options.headers }, remoteAddress: request.ip }
    // Awaited within: it is sent when it is awaited.
    return onBehalfOf(request, async () => await app.inject(injected), toolOf(message))
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
    find: (callId) => readAsyncCall(context.redis, { id: callId, accountId: sender.accountId }),
    toolCalls: new ToolCalls(context.redis, sender, () => context.health.now()),
    isDraining: () => context.isDraining,
    left,
  }
}

/** Is aborted when the client closes the connection or its answer's stream. */
export function whenClientLeaves({ raw }: FastifyReply): AbortSignal {
  const left = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) left.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The caller left.' }))
  })
  return left.signal
}

/**
 * The id of the call that an answer belongs to; undefined if the call was refused before it had an
 * id.
 */
export function callIdOf({ headers }: CallOutcome): string | undefined {
  const id = headers['x-call-id']
  return typeof id === 'string' ? id : undefined
}
