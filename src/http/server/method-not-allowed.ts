import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { GatewayError } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Methods for `Allow`, if a route answers the others too, with a refusal of its own. */
    allow?: string[]
  }
}

/** Tells, for an address no route took, which methods a route at that address takes. */
export type AllowedMethods = (url: string) => string[]

/** A route as it was registered: `GET` and `/v1/teams/:id`. */
export interface RegisteredRoute {
  method: string
  url: string
  /** As guards of inner scopes have left them, once the server is ready. */
  options: RouteOptions
}

const registered = new WeakMap<FastifyInstance, RegisteredRoute[]>()

/** Every route of a server made with `collectMethods`, so that a check can cover all of them. */
export function listRoutes(app: FastifyInstance): RegisteredRoute[] {
  return registered.get(app) ?? []
}

/** Listens to the routes being registered. Call it before the first route. */
export function collectMethods(app: FastifyInstance): AllowedMethods {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  const list: RegisteredRoute[] = []
  registered.set(app, list)
  app.addHook('onRoute', (options) => {
    const { url, method, config } = options
    list.push(...[method].flat().map((name) => ({ method: name, url, options })))
    const pattern = url
      .split('/')
      .map((part) =>
        part.startsWith(':') ? '[^/]+' : part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
      )
      .join('/')
    routes.push({ pattern: new RegExp(`^${pattern}$`), methods: config?.allow ?? [method].flat() })
  })
  return (url) => {
    const [path = ''] = url.split('?', 1)
    const methods = routes.filter(({ pattern }) => pattern.test(path)).flatMap((route) => route.methods)
    return [...new Set(methods)].sort()
  }
}

/**
 * Refuses a request that no route took.
 *
 * @throws GatewayError METHOD_NOT_ALLOWED, or NOT_FOUND with these details
 */
export function refuseUnrouted(
  { url }: Pick<FastifyRequest, 'url'>,
  allowedMethods: AllowedMethods,
  details: { hint?: string } = {},
): never {
  const allow = allowedMethods(url)
  throw allow.length > 0 ? methodNotAllowed(allow) : new GatewayError('NOT_FOUND', details)
}

/** Names the methods in words too, because many clients show the body and no headers. */
export function methodNotAllowed(allow: string[]): GatewayError {
  const words = new Intl.ListFormat('en', { type: 'disjunction' }).format(allow.filter((method) => method !== 'HEAD'))
  return new GatewayError('METHOD_NOT_ALLOWED', {
    message: `This route takes only ${words}.`,
    hint: `Send the request with ${words}`,
    tokens: { allow: allow.join() },
    allow,
  })
}
