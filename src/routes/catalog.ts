import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import Type, { type Static } from 'typebox'
import { SHARED_BUCKET } from '../caps/bucket.ts'
import type { CapState } from '../caps/cap.ts'
import { type Api, type ApiEndpoint, isOpen } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { exampleCall } from '../catalog/example-call.ts'
import { nullable } from '../catalog/json.ts'
import { expectation } from '../catalog/parameter-words.ts'
import { rankApis } from '../catalog/search.ts'
import type { Caps } from '../catalog/upstream.ts'
import type { Context } from '../context.ts'
import { findLastHealthChange, type HealthChange, listHealthChanges } from '../db/health-changes.ts'
import { GatewayError } from '../errors.ts'
import type { HealthView } from '../health/health-view.ts'
import { publicStateOf } from '../health/public-state.ts'
import { openToAnyOrigin } from '../http/any-origin.ts'
import { ErrorAnswer } from '../http/error-answer.ts'
import { Renderings } from '../http/rendering.ts'

const CatalogEndpoint = Type.Object({
  path: Type.String({ description: 'Path of the endpoint, such as /current' }),
  method: Type.String({ description: 'HTTP method' }),
  description: nullable(Type.String({ description: 'What it answers' })),
  params: Type.Record(
    Type.String(),
    Type.Object({
      type: Type.String({ description: 'JSON type of the value' }),
      required: Type.Boolean({ description: 'Whether a call must give it' }),
      description: Type.String({ description: 'Meaning and bounds' }),
      default: Type.Optional(Type.Unknown({ description: 'Value where a call gives none' })),
    }),
    { description: 'Parameters by name' },
  ),
})

const ApiEntry = Type.Object(
  {
    api_name: Type.String({ description: 'Slug, as in the path of a call' }),
    display_name: Type.String({ description: 'Name for people' }),
    category: nullable(Type.String({ description: 'Group of the catalog' })),
    description: nullable(Type.String({ description: 'What the API answers' })),
    tags: Type.Array(Type.String(), { description: 'Subjects' }),
    free: Type.Boolean({ description: 'Whether its lowest tier is the free plan' }),
    tier_required: Type.Enum(['developer', 'pro', 'business', 'enterprise'], {
      description: 'Lowest tier that may call it',
    }),
    enabled: Type.Boolean({ description: 'Whether live calls are taken; test keys are answered either way' }),
    waiting_for: nullable(Type.String({ description: 'What an API that is not enabled waits for' })),
    health_score: Type.Integer({ minimum: 0, maximum: 100, description: '0 while it is not enabled' }),
    example_query: nullable(Type.String({ description: 'Parameters of an example call, as a query string' })),
    endpoints: Type.Array(CatalogEndpoint, { description: 'Its endpoints' }),
  },
  { title: 'ApiEntry' },
)
type ApiEntry = Static<typeof ApiEntry>

const CatalogQuery = Type.Object({
  q: Type.Optional(
    Type.String({ maxLength: 200, description: 'What you need, in everyday words: only what fits, best first' }),
  ),
})

const CatalogAnswer = Type.Object({
  data: Type.Array(ApiEntry, { description: 'The APIs' }),
  total: Type.Integer({ description: 'Number of APIs in data' }),
})

const status = (description: string) => Type.Enum(['Healthy', 'Degraded', 'Down'], { description })

const Change = Type.Object({
  at: Type.String({ format: 'date-time', description: 'When it changed' }),
  from: status('State before'),
  to: status('State after'),
  cause: Type.String({ description: 'score, failures-in-a-row or trials-passed' }),
  code: nullable(Type.String({ description: 'Code of the attempt that decided it' })),
  score: Type.Integer({ description: 'Score after the change, 0 to 100' }),
})

const Health = Type.Object(
  {
    status: status('State; the nearest one where it was not checked yet'),
    score: Type.Integer({ minimum: 0, maximum: 100, description: 'Score, 0 to 100' }),
    since: nullable(
      Type.String({ format: 'date-time', description: 'Begin of this state; null where it never changed' }),
    ),
    checkedAt: nullable(
      Type.String({
        format: 'date-time',
        description: 'Last call or probe; null: not checked yet, so nothing is known',
      }),
    ),
    parts: Type.Object(
      {
        availability: Type.Number({ description: 'Up to 80: 80·max(0, 1−2f) with f = fail/(ok+fail+5)' }),
        latency: Type.Number({ description: 'Up to 20: 20·clamp((10 s − p95)/9 s, 0, 1)' }),
        ok: Type.Number({ description: 'Good attempts, each counting half after two minutes' }),
        fail: Type.Number({ description: 'Failed attempts, likewise' }),
        failShare: Type.Number({ description: 'Share of attempts that failed, 0 to 1' }),
        p95Ms: nullable(
          Type.Number({
            description: '95th percentile of the time of an attempt, milliseconds; null without attempts',
          }),
        ),
      },
      { description: 'What the score is made of' },
    ),
    lastChange: Type.Union([Change, Type.Null()], { description: 'Latest change of the state' }),
    history: Type.Array(Change, { description: 'Changes of the last 24 hours, newest first' }),
  },
  { description: 'How well it answers' },
)

/** The upstream's cap as it stands; null where it is not known, for want of Redis. */
const CapAnswer = Type.Object(
  {
    concurrency: Type.Integer({ description: 'Requests that may be under way at once' }),
    underWay: nullable(Type.Integer({ description: 'Requests under way now' })),
    waiting: nullable(Type.Integer({ description: 'Calls that wait for their turn' })),
    nextSlotMs: nullable(
      Type.Integer({ description: 'When a call that comes now would have its turn, milliseconds from now' }),
    ),
    rates: Type.Array(
      Type.Object({
        max: Type.Integer({ description: 'Requests allowed in any window' }),
        seconds: Type.Number({ description: 'Length of the window' }),
        left: nullable(Type.Integer({ description: 'Of them, left now' })),
      }),
      { description: 'Limits in rolling windows' },
    ),
  },
  { description: 'What its source allows the gateway' },
)

const ApiDetail = Type.Object({
  ...ApiEntry.properties,
  health: Health,
  limits: CapAnswer,
  terms: Type.Object(
    {
      summary: Type.String({ description: 'The terms in a sentence' }),
      url: nullable(Type.String({ description: 'The terms in full' })),
      attribution: nullable(Type.String({ description: 'Credit that the source asks for' })),
    },
    { description: 'Terms of its source' },
  ),
  docs: Type.String({ description: 'Page of the API' }),
})
type ApiDetail = Static<typeof ApiDetail>

const DAY_MS = 86_400_000
const HISTORY_MAX = 200

/** How long the details of an API are kept, milliseconds: two queries and a script for whoever asks. */
const DETAIL_MS = 1_000
const DETAILS_MAX = 100

/** The public catalog. */
export async function catalogRoutes(
  app: FastifyInstance,
  { caps, catalog, config, strangersDb, health }: Context,
): Promise<void> {
  const lists = new Renderings<Buffer>(() => publicStateOf(catalog, health))
  const details = new LRUCache<string, Promise<ApiDetail>>({ max: DETAILS_MAX, ttl: DETAIL_MS })
  const listApis = (q: string): Static<typeof CatalogAnswer> => {
    const data = rankApis(offeredApis(catalog), q).map((api) => toEntry(api, health.of(api.slug)))
    return { data, total: data.length }
  }

  openToAnyOrigin(app)
  const list = {
    schema: {
      summary: 'List all active APIs',
      tags: ['Catalog'],
      querystring: CatalogQuery,
      response: { 200: CatalogAnswer, 400: ErrorAnswer },
    },
  }
  app.get<{ Querystring: Static<typeof CatalogQuery> }>('/v1/catalog', list, async (request, reply) => {
    const { q = '' } = request.query
    if (q !== '') return listApis(q)
    const body = await lists.get('all', () => Buffer.from(String(reply.serializeInput(listApis(''), '200'))))
    return reply.type('application/json; charset=utf-8').send(body)
  })

  const detail = {
    config: { errors: ['API_NOT_FOUND'] as const },
    schema: {
      summary: 'One API with its health, limits and terms',
      tags: ['Catalog'],
      params: Type.Object({ slug: Type.String({ description: 'An api_name of the catalog' }) }),
      response: { 200: ApiDetail, 404: ErrorAnswer },
    },
  }
  app.get<{ Params: { slug: string } }>('/v1/catalog/:slug', detail, async ({ params }): Promise<ApiDetail> => {
    const api = catalog.get(params.slug)
    if (!api || !isListed(api)) throw new GatewayError('API_NOT_FOUND')
    const kept = details.get(api.slug)
    if (kept) return await kept
    const detail = readDetail(api)
    details.set(api.slug, detail)
    // A failure is told to those who waited for it and is not kept.
    detail.catch(() => details.delete(api.slug))
    return await detail
  })

  async function readDetail(api: Api): Promise<ApiDetail> {
    const [history, last] = await Promise.all([
      listHealthChanges(strangersDb, api.slug, new Date(Date.now() - DAY_MS), HISTORY_MAX),
      findLastHealthChange(strangersDb, api.slug),
    ])
    const view = health.of(api.slug)
    // The rest is worth telling without it.
    const cap = await caps
      .of(api, SHARED_BUCKET)
      .read()
      .catch(() => undefined)
    const { summary, url = null, attribution = null } = api.upstream.terms
    return {
      ...toEntry(api, view),
      health: toHealth(api, view, { history, last }),
      limits: toCapState(api.caps, cap),
      terms: { summary, url, attribution },
      docs: `${config.http.baseUrl}/apis/${api.slug}`,
    }
  }
}

function toCapState({ concurrency, rates }: Caps, cap: CapState | undefined): ApiDetail['limits'] {
  return {
    concurrency,
    underWay: cap?.underWay ?? null,
    waiting: cap?.ahead ?? null,
    nextSlotMs: cap?.nextSlotMs ?? null,
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
  const checkedAt = Math.max(view.lastCallAt, view.lastProbeAt)
  return {
    // Of the three states of the specification the one that callers get: nobody is answered by what is not enabled.
    status: isOpen(api) ? view.status : 'Down',
    score: scoreOf(api, view),
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

function toChange({ at, from_status, to_status, cause, numbers }: HealthChange): Static<typeof Change> {
  const status = (text: string) => text as Static<typeof Health>['status']
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

function scoreOf(api: Api, { score }: HealthView): number {
  return isOpen(api) ? score : 0
}

function waitingFor(api: Api): string | null {
  if (api.enabled) return null
  return api.needsOwnKey ? 'A key of your own for this API' : "The operator's key for this API"
}

function toEntry(api: Api, health: HealthView): ApiEntry {
  const { upstream } = api
  const endpoints = [...api.endpoints.values()]
  return {
    api_name: api.slug,
    display_name: upstream.displayName,
    category: upstream.category,
    description: upstream.description,
    tags: upstream.tags,
    free: api.tierRequired === 'developer',
    tier_required: api.tierRequired,
    enabled: isOpen(api),
    waiting_for: waitingFor(api),
    health_score: scoreOf(api, health),
    example_query: endpoints[0] ? exampleCall(api.slug, endpoints[0]) : null,
    endpoints: endpoints.map(toCatalogEndpoint),
  }
}

function toCatalogEndpoint({ path, endpoint, parameters }: ApiEndpoint): ApiEntry['endpoints'][number] {
  const params = parameters.map(({ name, schema, required }) => {
    const description = [schema.description, expectation(schema, true).replace('it must be ', '')]
      .filter(Boolean)
      .join('; ')
    const fallback = schema.default === undefined ? {} : { default: schema.default }
    return [name, { type: schema.type ?? 'string', required, description, ...fallback }]
  })
  return { path, method: 'GET', description: endpoint.description, params: Object.fromEntries(params) }
}
