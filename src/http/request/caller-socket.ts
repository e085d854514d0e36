import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyRequest } from 'fastify'
import type { CallOrigin } from '../../queue/call-job.ts'

/** The connection of a caller, which shows when the caller leaves. */
export type CallerSocket = FastifyRequest['raw']['socket']

/** A request whose handler makes calls within this process. */
interface Caller {
  socket: CallerSocket
  requestId: string
  /** The tool that makes the calls, if any. */
  tool: string | undefined
}

const callers = new AsyncLocalStorage<Caller>()

/**
 * Runs work that makes calls within this process for the caller of a request. The calls end if the
 * caller leaves.
 */
export function onBehalfOf<T>(
  { raw, id }: Pick<FastifyRequest, 'raw' | 'id'>,
  work: () => T,
  tool?: string | undefined,
): T {
  return callers.run({ socket: raw.socket, requestId: id, tool }, work)
}

/** The connection of the client that waits for a request's answer. */
export function callerSocket(request: Pick<FastifyRequest, 'raw'>): CallerSocket {
  return callers.getStore()?.socket ?? request.raw.socket
}

/**
 * How the calls of a request arrived. The calls of a tool have the id of the request that called
 * the tool.
 */
export function originOf({ id }: Pick<FastifyRequest, 'id'>, via: CallOrigin['via']): CallOrigin {
  const caller = callers.getStore()
  if (!caller) return { requestId: id, via }
  const { requestId, tool } = caller
  return { requestId, via: 'mcp', ...(tool === undefined ? {} : { tool }) }
}

/**
 * Whether a tool makes the request within this process. The tool's own request was checked already.
 */
export function isMadeByTool(): boolean {
  return callers.getStore() !== undefined
}
