import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyRequest } from 'fastify'
import type { CallOrigin } from '../../queue/call-job.ts'

/** The part of a connection that tells of its end. */
export type CallerSocket = FastifyRequest['raw']['socket']

/** A request whose work makes calls within this process. */
interface Caller {
  socket: CallerSocket
  requestId: string
  /** The tool that makes the calls. */
  tool: string | undefined
}

const callers = new AsyncLocalStorage<Caller>()

/**
 * Runs work whose calls are made within this process for the caller of a request: they end when the
 * caller leaves.
 */
export function onBehalfOf<T>(
  { raw, id }: Pick<FastifyRequest, 'raw' | 'id'>,
  work: () => T,
  tool?: string | undefined,
): T {
  return callers.run({ socket: raw.socket, requestId: id, tool }, work)
}

/** The connection of whoever waits for a request's answer. */
export function callerSocket(request: Pick<FastifyRequest, 'raw'>): CallerSocket {
  return callers.getStore()?.socket ?? request.raw.socket
}

/**
 * How the calls of a request came: the calls of a tool have the id of the request that called the
 * tool.
 */
export function originOf({ id }: Pick<FastifyRequest, 'id'>, via: CallOrigin['via']): CallOrigin {
  const caller = callers.getStore()
  if (!caller) return { requestId: id, via }
  const { requestId, tool } = caller
  return { requestId, via: 'mcp', ...(tool === undefined ? {} : { tool }) }
}

/** Whether a tool makes the request in this process, which has checked the tool's own request. */
export function isMadeByTool(): boolean {
  return callers.getStore() !== undefined
}
