import type { AsyncCall } from '../queue/async-call.ts'
import type { TaskState } from './tasks.ts'
import type { ToolCalls } from './tool-calls.ts'

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

/**
 * The id of the call that an answer belongs to; undefined for a call that was refused before it had
 * one.
 */
export function callIdOf({ headers }: CallOutcome): string | undefined {
  const id = headers['x-call-id']
  return typeof id === 'string' ? id : undefined
}
