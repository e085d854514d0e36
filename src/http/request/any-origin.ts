import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The method with which pages of any origin may call the route. Absent: none may. */
    sharedMethod?: 'GET' | 'POST'
  }
}

/**
 * Lets pages of any origin read the answers of a scope's routes. The routes are public and use no
 * credential.
 */
export function openToAnyOrigin(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, sharedMethod: 'GET' }
  })
}

/**
 * Sets the headers that let the page of a request read its answer. It comes before all checks, so
 * that the page can also read a refusal, and how long to wait after it.
 */
export function shareAnswer({ headers, routeOptions }: FastifyRequest, reply: FastifyReply): void {
  const { sharedMethod } = routeOptions.config
  if (sharedMethod === undefined) return
  reply.header('access-control-allow-origin', '*')
  reply.header('access-control-expose-headers', 'WWW-Authenticate, Retry-After')
  if (headers['access-control-request-method'] === undefined) return
  reply.header('access-control-allow-methods', sharedMethod)
  reply.header('access-control-max-age', PREFLIGHT_SECONDS)
  const requested = headers['access-control-request-headers']
  if (requested !== undefined) reply.header('access-control-allow-headers', requested)
}

/** How long a browser may remember the answer to a preflight, seconds. */
const PREFLIGHT_SECONDS = 3_600

/** A route that pages of any origin may call. */
export interface SharedRoute {
  method: 'GET' | 'POST'
  path: string
  /** Units that a request without an account takes from the bucket of its address. Default: 1. */
  anonymousUnits?: number
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>
}

/**
 * Registers routes that pages of any origin may call, in a scope of their own. Each route answers
 * preflights (Fetch standard, 4.8), and pages may read all of its answers, including refusals. The
 * routes ignore cookies.
 */
export function shareRoutes(app: FastifyInstance, routes: SharedRoute[]): void {
  for (const { method, path, anonymousUnits = 1, handler } of routes) {
    const config = { sharedMethod: method }
    app.route({ method, url: path, schema: { hide: true }, config: { ...config, anonymousUnits }, handler })
    app.options(path, { schema: { hide: true }, config }, async (_request, reply) => reply.status(204).send())
  }
}
