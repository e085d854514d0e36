import type { FastifyInstance, RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** A summary of one line, for the document and the reference. */
    summary?: string
    description?: string
    tags?: readonly string[]
    /** Name of the operation in generated clients. Default: made from method and path. */
    operationId?: string
    /** Whether the document leaves the route out: pages and their files, which no client needs. */
    hide?: boolean
  }
  interface FastifyContextConfig {
    /**
     * Error codes of this route, besides the codes that follow from its body, guard and parameters.
     */
    errors?: readonly ErrorCode[]
    /** The credential that the route's scope requires. The guard of the scope sets it. */
    guard?: 'session' | 'call'
    /** Set if the route returns the answer of a proxy call once the call has ended. */
    outcome?: 'call'
  }
}

/** One method of one registered route. */
export interface DocumentedRoute {
  method: string
  /** The path as Fastify writes it, `/v1/keys/:id`. */
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
  /** Schemas by status; `{ description, content }` if the answer is not JSON. */
  responses: Record<string, unknown>
  errors: readonly ErrorCode[]
  guard: 'session' | 'call' | undefined
  outcome: 'call' | undefined
}

/**
 * Collects routes as they are registered. Call it before the first route, and read the list after
 * the last.
 */
export function collectRoutes(app: FastifyInstance): () => DocumentedRoute[] {
  const registered: RouteOptions[] = []
  // The options are stored and read later, because guards of inner scopes change them after this
  // hook.
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
