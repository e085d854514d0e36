import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { GatewayError } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Methods for `Allow`, if the route also answers other methods with its own refusal. */
    allow?: string[]
  }
}

/** Returns the methods that routes at an address accept. */
export type AllowedMethods = (url: string) => string[]

/** A registered route: `GET` and `/v1/teams/:id`. */
export interface RegisteredRoute {
  method: string
  url: string
  /** The options, including changes by guards of inner scopes once the server is ready. */
  options: RouteOptions
}

const registered = new WeakMap<FastifyInstance, RegisteredRoute[]>()

/**
 * Every route of a server on which `collectMethods` was called, so that a test can check all of
 * them.
 */
export function listRoutes(app: FastifyInstance): RegisteredRoute[] {
  return registered.get(app) ?? []
}

/** Collects routes as they are registered. Call it before the first route. */
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
 * Refuses a request for which there is no route.
 *
 * @throws GatewayError METHOD_NOT_ALLOWED, or NOT_FOUND with these details
 */
export function refuseUnrouted(
  { method, url }: Pick<FastifyRequest, 'method' | 'url'>,
  allowedMethods: AllowedMethods,
  details: { hint?: string } = {},
): never {
  const allow = allowedMethods(url)
  throw allow.length > 0 && !allow.includes(method) ? methodNotAllowed(allow) : new GatewayError('NOT_FOUND', details)
}

/** The message names the methods too, because many clients show only the body. */
export function methodNotAllowed(allow: string[]): GatewayError {
  const words = new Intl.ListFormat('en', { type: 'disjunction' }).format(allow.filter((method) => method !== 'HEAD'))
  return new GatewayError('METHOD_NOT_ALLOWED', {
    message: `This route allows only ${words}.`,
    hint: `Send the request with ${words}`,
    tokens: { allow: allow.join() },
    allow,
  })
}
