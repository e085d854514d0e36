import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyRequest } from 'fastify'

/** The part of a connection that tells of its end. */
export type CallerSocket = FastifyRequest['raw']['socket']

const callers = new AsyncLocalStorage<CallerSocket>()

/** Runs work whose calls are made within this process for the caller of a request: they end when that one leaves. */
export function onBehalfOf<T>(request: Pick<FastifyRequest, 'raw'>, work: () => T): T {
  return callers.run(request.raw.socket, work)
}

/** The connection of whoever waits for a request's answer. */
export function callerSocket(request: Pick<FastifyRequest, 'raw'>): CallerSocket {
  return callers.getStore() ?? request.raw.socket
}

/** Whether work is done for a request that this process has checked already. */
export function isInProcess(): boolean {
  return callers.getStore() !== undefined
}
