import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyRequest } from 'fastify'
import type { CallOrigin } from '../../queue/call-job.ts'

/** What shows when a caller leaves: its connection, or for a tool, its request. */
export interface CallerSocket {
  readonly destroyed: boolean
  once: (event: 'close', listener: () => void) => unknown
  off: (event: 'close', listener: () => void) => unknown
}

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
  { id, tool, left }: { id: string; tool: string | undefined; left: AbortSignal },
  work: () => T,
): T {
  return callers.run({ socket: closedWith(left), requestId: id, tool }, work)
}

function closedWith(left: AbortSignal): CallerSocket {
  return {
    get destroyed() {
      return left.aborted
    },
    once: (_event, listener) => left.addEventListener('abort', listener, { once: true }),
    off: (_event, listener) => left.removeEventListener('abort', listener),
  }
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
