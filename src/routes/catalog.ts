import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import Type, { type Static } from 'typebox'
import type { Principal } from '../admission/authenticate.ts'
import { readQuote } from '../admission/quote.ts'
import { rateLimitHeaders } from '../admission/rate-limit-headers.ts'
import { RequestCallers } from '../admission/request-callers.ts'
import type { CapState } from '../caps/replies.ts'
import type { Api } from '../catalog/catalog.ts'
import { shownScore, shownStatus, toEntry } from '../catalog/catalog-entry.ts'
import { ApiDetail, CatalogAnswer } from '../catalog/catalog-schema.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { sourceName } from '../catalog/fallback.ts'
import { rankApis } from '../catalog/search.ts'
import { apiNotFound } from '../catalog/unknown-api.ts'
import type { Context } from '../context.ts'
import { type HealthChange, listHealthChanges } from '../db/health-changes.ts'
import { GatewayError } from '../errors.ts'
import type { HealthView } from '../health/health-view.ts'
import { publicStateOf } from '../health/public-state.ts'
import { seenChanges } from '../health/seen-changes.ts'
import { type Cacheable, createCacheable, sendCacheable } from '../http/answer/cacheable.ts'
import { PRIVATE_ANSWER } from '../http/answer/call-answer.ts'
import { openToAnyOrigin } from '../http/request/any-origin.ts'
import { readBearer } from '../http/request/bearer.ts'
import type { App } from '../http/request/typed-app.ts'
import { Renderings } from '../pages/rendering.ts'
import { conditionOf } from '../portal/condition.ts'
import { SHARED_BUCKET } from '../queue/wait-queue-entry.ts'

const CatalogQuery = Type.Object({
  q: Type.Optional(
    Type.String({
      maxLength: 200,
      description:
        'What you need, in everyday words. The answer then lists only the matching APIs, the best match first',
    }),
  ),
})

const DAY_MS = 86_400_000
const HISTORY_MAX = 200

/**
 * How long the details of an API are cached, milliseconds. Each reading costs two queries and a
 * script.
 */
const DETAIL_MS = 1_000
const DETAILS_MAX = 100

/** The public catalog. */
export async function catalogRoutes(app: App, context: Context): Promise<void> {
  openToAnyOrigin(app)
  const callers = new RequestCallers(app, context)
  routeListing(app, { context, callers })
  routeDetail(app, { context, callers })
}

interface CatalogDeps {
  context: Context
  callers: RequestCallers
}

function routeListing(app: App, { context, callers }: CatalogDeps): void {
  const { catalog, health } = context
  const lists = new Renderings<Cacheable>(() => publicStateOf(catalog, health))
  const listApis = (q: string, allowed?: readonly string[]): Static<typeof CatalogAnswer> => {
    const isAllowed = ({ slug }: Api) => allowed?.includes(slug) ?? true
    const data = rankApis(offeredApis(catalog), q, isAllowed).map((api) => toEntry(api, health.of(api.slug).score))
    return { data, total: data.length }
  }
  const list = {
    // Two units, because a search is ranked and written for its caller only, and not cached.
    config: { anonymousUnits: 2 },
    schema: {
      summary: 'List all active APIs',
      description: 'If the key or access token may call only certain APIs, the answer lists only these.',
      tags: ['Catalog'],
      querystring: CatalogQuery,
      response: { 200: CatalogAnswer },
    },
  }
  app.get(
    '/v1/catalog',
    list,
    async (request: FastifyRequest<{ Querystring: Static<typeof CatalogQuery> }>, reply: FastifyReply) => {
      const { q = '' } = request.query
      reply.header('vary', 'authorization, x-api-key, x-gateway-mode')
      const allowed = await narrowedApis(callers, request)
      if (allowed) {
        reply.headers(PRIVATE_ANSWER)
        return listApis(q, allowed)
      }
      if (q !== '') return listApis(q)
      const all = await lists.get('all', () =>
        createCacheable(String(reply.serializeInput(listApis(''), '200')), 'application/json; charset=utf-8'),
      )
      return await sendCacheable(reply, all, 'no-cache')
    },
  )
}

function routeDetail(app: App, { context, callers }: CatalogDeps): void {
  const { catalog } = context
  const details = new LRUCache<string, Promise<ApiDetail>>({ max: DETAILS_MAX, ttl: DETAIL_MS })
  const options = {
    config: { errors: ['API_NOT_FOUND', 'INVALID_ENCODING', ...CREDENTIAL_ERRORS] as const },
    schema: {
      summary: 'One API with its health, limits and terms',
      description:
        'If the request has a credential, `now` states what would happen to a call with it at this moment, such as how long the call would wait.',
      tags: ['Catalog'],
      params: Type.Object({ slug: Type.String({ description: 'An api_name of the catalog' }) }),
      response: { 200: ApiDetail },
    },
  }
  const detailOf = async (api: Api): Promise<ApiDetail> => {
    const kept = details.get(api.slug)
    if (kept) return await kept
    const detail = readDetail(context, api)
    details.set(api.slug, detail)
    // A failure is answered to all requests that waited for it, and is not cached.
    detail.catch(() => details.delete(api.slug))
    return await detail
  }
  app.get(
    '/v1/catalog/:slug',
    options,
    async (request: FastifyRequest<{ Params: { slug: string } }>, reply: FastifyReply): Promise<ApiDetail> => {
      const principal = await callerOf(callers, request)
      const { slug } = request.params
      const api = catalog.get(slug)
      if (!api || !isListed(api)) throw apiNotFound(offeredApis(catalog), slug)
      reply.header('vary', 'authorization, x-api-key, x-gateway-mode')
      if (!principal) return await detailOf(api)
      reply.headers(PRIVATE_ANSWER)
      const endpoints = [...api.endpoints.values()]
      const [detail, read] = await Promise.all([detailOf(api), readQuote(context, principal, { api, endpoints })])
      if (!read) return detail
      reply.headers(rateLimitHeaders(read.limits))
      return { ...detail, now: { ...read.quote, health: detail.health.status } }
    },
  )
}

const CREDENTIAL_ERRORS = [
  'INVALID_API_KEY',
  'INVALID_TOKEN',
  'TOKEN_EXPIRED',
  'KEY_ADDRESS_FORBIDDEN',
  'INVALID_PARAMETER',
  'RATE_LIMIT_EXCEEDED',
] as const

/**
 * The account of a request with a credential. Its requests are counted as on other routes.
 * Undefined without a credential.
 */
async function callerOf(callers: RequestCallers, request: FastifyRequest): Promise<Principal | undefined> {
  const { headers } = request
  if (headers['x-api-key'] === undefined && readBearer(headers) === undefined) return undefined
  return await callers.identify(request)
}

/**
 * Slugs that a key or an application may call, if its owner restricted them. With a wrong
 * credential, the public list is shown.
 */
async function narrowedApis(callers: RequestCallers, request: FastifyRequest): Promise<readonly string[] | undefined> {
  // A session may call all APIs, so it need not be looked up.
  if (request.headers['x-api-key'] === undefined && /\./.test(request.headers.authorization ?? '.')) return undefined
  try {
    return (await callerOf(callers, request))?.allowance?.apis ?? undefined
  } catch (error) {
    // Fails open to the public list, because calls are checked when they are made.
    if (error instanceof GatewayError) return undefined
    throw error
  }
}

async function readDetail({ caps, config, strangersDb, health }: Context, api: Api): Promise<ApiDetail> {
  const since = new Date(Date.now() - DAY_MS)
  const changesOf = ({ slug }: Api) => listHealthChanges(strangersDb, slug, { since, limit: HISTORY_MAX })
  const [own, fallback] = await Promise.all([changesOf(api), api.fallback && changesOf(api.fallback)])
  const changes = fallback ? seenChanges(own, fallback) : own
  const view = health.of(api.slug)
  // The other facts are worth showing without it.
  const cap = await caps
    .of(api, SHARED_BUCKET)
    .read()
    .catch(() => undefined)
  return {
    ...toEntry(api, view.score),
    health: toHealth(api, view, { history: changes.filter(({ at }) => at >= since), last: changes[0] }),
    limits: toCapState(api, cap),
    terms: termsAnswer(api),
    fallback: api.fallback
      ? {
          name: sourceName(api.fallback.upstream),
          answering: view.isServedByFallback === true,
          terms: termsAnswer(api.fallback),
        }
      : null,
    docs: `${config.http.baseUrl}/apis/${api.slug}`,
  }
}

function termsAnswer({ upstream }: Api): ApiDetail['terms'] {
  const { summary, url = null, licence = null, attribution = null } = upstream.terms
  return { summary, url, licence, attribution }
}

function toCapState({ caps, pausedMode }: Api, cap: CapState | undefined): ApiDetail['limits'] {
  const { concurrency, rates } = caps
  return {
    concurrency,
    underWay: cap?.underWay ?? null,
    waiting: cap?.ahead ?? null,
    // Nobody knows when an operator will resume the API.
    nextSlotMs: pausedMode === 'hold' ? null : (cap?.nextSlotMs ?? null),
    limitedForMs: cap?.limitedMs ?? null,
    rates: rates.map(({ max, seconds }, index) => ({ max, seconds, left: cap?.left[index] ?? null })),
  }
}

function isListed(api: Api): boolean {
  return !api.isSwitchedOff
}

interface HealthPast {
  history: HealthChange[]
  last: HealthChange | undefined
}

function toHealth(api: Api, view: HealthView, { history, last }: HealthPast): ApiDetail['health'] {
  const { parts } = view
  const { reason, effect } = conditionOf(api, view)
  const meanwhile = [reason, effect].filter(Boolean).join(' ')
  const checkedAt = Math.max(view.lastCallAt, view.lastProbeAt)
  return {
    status: shownStatus(api, view.status),
    score: shownScore(api, view.score),
    meanwhile: meanwhile === '' ? null : meanwhile,
    checkedAt: checkedAt === 0 ? null : new Date(checkedAt).toISOString(),
    since: view.since === undefined ? null : new Date(view.since).toISOString(),
    parts: {
      availability: round(parts.availability),
      latency: round(parts.latency),
      ok: round(parts.ok),
      fail: round(parts.fail),
      failShare: round(parts.failShare),
      p95Ms: parts.p95Ms === undefined ? null : Math.round(parts.p95Ms),
    },
    lastChange: last ? toChange(last) : null,
    history: history.map(toChange),
  }
}

function toChange({
  at,
  from_status,
  to_status,
  cause,
  numbers,
}: HealthChange): ApiDetail['health']['history'][number] {
  const status = (text: string) => text as ApiDetail['health']['status']
  return {
    at: at.toISOString(),
    from: status(from_status),
    to: status(to_status),
    cause,
    code: numbers.code || null,
    score: numbers.score,
  }
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
