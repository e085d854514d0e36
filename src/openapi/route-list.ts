import type { FastifyInstance, RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** One line, for the document and the reference. */
    summary?: string
    description?: string
    tags?: readonly string[]
    /** Name of the operation in generated clients. Default: made from method and path. */
    operationId?: string
    /** Left out of the document: pages and their files, which no client is generated for. */
    hide?: boolean
  }
  interface FastifyContextConfig {
    /**
     * Failures of this route besides the failures that its body, guard and parameters bring with
     * them.
     */
    errors?: readonly ErrorCode[]
    /** Which credential the route's scope asks for; the guard of the scope says so. */
    guard?: 'session' | 'call'
    /** The route answers as a proxy call would have, once there is an outcome. */
    outcome?: 'call'
  }
}

/** One method of one route as it was registered, for the document. */
export interface DocumentedRoute {
  method: string
  /** Fastify's form, `/v1/keys/:id`. */
  url: string
  summary: string | undefined
  description: string | undefined
  tags: readonly string[]
  operationId: string | undefined
  hidden: boolean
  body: TSchema | undefined
  querystring: TSchema | undefined
  params: TSchema | undefined
  headers: TSchema | undefined
  /** By status: a schema, or `{ description, content }` if the answer is not JSON. */
  responses: Record<string, unknown>
  errors: readonly ErrorCode[]
  guard: 'session' | 'call' | undefined
  outcome: 'call' | undefined
}

/**
 * Listens to the routes being registered. Call it before the first route; read the list after the
 * last.
 */
export function collectRoutes(app: FastifyInstance): () => DocumentedRoute[] {
  const registered: RouteOptions[] = []
  // The options are kept, not read: guards of inner scopes add to them after this hook has run.
  app.addHook('onRoute', (route) => void registered.push(route))
  return () => registered.flatMap(describe)
}

function describe(route: RouteOptions): DocumentedRoute[] {
  const { schema = {}, config = {}, url } = route
  return [route.method]
    .flat()
    .filter((method) => method !== 'HEAD' && method !== 'OPTIONS')
    .map((method) => ({
      method,
      url,
      summary: schema.summary,
      description: schema.description,
      tags: schema.tags ?? [],
      operationId: schema.operationId,
      hidden: schema.hide === true,
      body: schema.body as TSchema | undefined,
      querystring: schema.querystring as TSchema | undefined,
      params: schema.params as TSchema | undefined,
      headers: schema.headers as TSchema | undefined,
      responses: (schema.response ?? {}) as Record<string, unknown>,
      errors: config.errors ?? [],
      guard: config.guard,
      outcome: config.outcome,
    }))
}
