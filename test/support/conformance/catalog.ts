import assert from 'node:assert/strict'
import { type SpecEndpoint, specTable } from '../spec-table.ts'
import { assertFailure, type Statement, type World } from './world.ts'

interface DescribedPath {
  get: { parameters: { name: string; example?: unknown }[] }
}

/** The parameters of an example call, as the OpenAPI document gives them. */
async function exampleOf({ gateway, memory }: World, path: string): Promise<Record<string, unknown>> {
  memory.paths ??= fetch(`${gateway.url}/openapi.json`).then(async (answer) => Object(await answer.json()).paths)
  const paths = (await memory.paths) as Record<string, DescribedPath>
  const { parameters } = paths[path]?.get ?? assert.fail(path)
  return Object.fromEntries(parameters.flatMap(({ name, example }) => (example === undefined ? [] : [[name, example]])))
}

const query = (parameters: Record<string, unknown>): string =>
  new URLSearchParams(
    Object.entries(parameters).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()

/** Checks an endpoint: its parameters, their bounds, and its data. */
async function checkEndpoint(world: World, path: string, { parameters, data }: SpecEndpoint): Promise<void> {
  const { send, elite } = world
  const needed = await exampleOf(world, path)
  if (path.includes('/ip-lookup/')) needed.ip = '8.8.8.8'
  const call = (given: Record<string, unknown>) => send(`${path}?${query(given)}`, { key: elite.test })
  const { status, body, text } = await call(needed)
  assert.equal(status, 200, `${path} ${text}`)
  assert.equal(body.status, 'success')
  for (const name of data) assert.ok(name in body.data, `${path} has no ${name}`)
  for (const [name, { required, minimum, maximum, enum: values, type }] of Object.entries(parameters)) {
    const wrong = [
      ...(required ? [undefined] : []),
      ...(minimum === undefined ? [] : [minimum - 1]),
      ...(maximum === undefined ? [] : [maximum + 1]),
      ...(values ? ['none-of-them'] : []),
      ...(type === 'number' ? ['many'] : []),
    ]
    for (const value of wrong) {
      const { [name]: _, ...others } = needed
      assertFailure(await call(value === undefined ? others : { ...others, [name]: value }), 400, 'INVALID_PARAMETER')
    }
  }
}

/** Statements about the catalog and health. */
export const CATALOG_STATEMENTS: Statement[] = [
  {
    says: 'GET /v1/catalog lists the 28 APIs of the specification without a credential: data and total',
    holds: async ({ send }) => {
      const { status, body } = await send('/v1/catalog')
      assert.deepEqual([status, body.total, body.data.length], [200, 28, 28])
      assert.deepEqual(
        body.data.map(({ api_name }: { api_name: string }) => api_name).sort(),
        Object.keys(specTable).sort(),
      )
    },
  },
  {
    says: 'each entry of the catalog has the members of ApiEntry, a known tier and a health score from 0 to 100',
    holds: async ({ send }) => {
      for (const entry of (await send('/v1/catalog')).body.data) {
        assert.ok(['developer', 'pro', 'business', 'enterprise'].includes(entry.tier_required))
        assert.ok(Number.isInteger(entry.health_score) && entry.health_score >= 0 && entry.health_score <= 100)
        for (const name of ['api_name', 'display_name']) assert.equal(typeof entry[name], 'string')
        for (const name of ['category', 'description', 'example_query']) assert.ok(name in entry)
        assert.ok(entry.tags.every((tag: unknown) => typeof tag === 'string') && typeof entry.free === 'boolean')
      }
    },
  },
  {
    says: 'each entry of the catalog lists the endpoints of the specification, all GET, with their parameters',
    holds: async ({ send }) => {
      for (const { api_name, endpoints } of (await send('/v1/catalog')).body.data) {
        const spec = specTable[api_name] ?? assert.fail(api_name)
        assert.deepEqual(endpoints.map(({ path }: { path: string }) => path).sort(), Object.keys(spec).sort())
        for (const { path, method, params } of endpoints) {
          assert.equal(method, 'GET')
          assert.deepEqual(Object.keys(params).sort(), Object.keys(spec[path]?.parameters ?? {}).sort())
        }
      }
    },
  },
  {
    says: 'an API that needs a step of the operator is listed with enabled: false and this step, and is never shown as healthy',
    holds: async ({ send }) => {
      for (const { api_name, enabled, waiting_for } of (await send('/v1/catalog')).body.data) {
        assert.deepEqual([enabled, waiting_for === null], api_name === 'news' ? [false, false] : [true, true])
      }
      const { health, health_score } = (await send('/v1/catalog/news')).body
      assert.deepEqual([health.status, health_score], ['Down', 0])
    },
  },
  {
    says: 'checkedAt is null for an API that was never called or probed',
    holds: async ({ send }) => {
      assert.equal((await send('/v1/catalog/sunrise-sunset')).body.health.checkedAt, null)
    },
  },
  {
    says: 'news requires the tier pro, and every other API the tier developer',
    holds: async ({ send }) => {
      for (const { api_name, tier_required } of (await send('/v1/catalog')).body.data) {
        assert.equal(tier_required, api_name === 'news' ? 'pro' : 'developer')
      }
    },
  },
  {
    says: 'GET /v1/catalog/{slug} adds health with status and parts, limits, terms and docs',
    holds: async ({ send }) => {
      const { status, body } = await send('/v1/catalog/code-host-search')
      assert.equal(status, 200)
      assert.ok(['Healthy', 'Degraded', 'Down'].includes(body.health.status))
      assert.equal(typeof body.health.parts, 'object')
      assert.deepEqual([body.limits.rates[0].max, body.limits.rates[0].seconds], [10, 60])
      assert.ok(body.terms.summary.length > 0 && body.docs.startsWith('http'))
    },
  },
  {
    says: 'a slug that is not in the catalog is answered 404',
    holds: async ({ send }) => assertFailure(await send('/v1/catalog/nothing'), 404, 'API_NOT_FOUND'),
  },
  {
    says: 'while the operator has given no key, a live call to news is answered 503 API_NOT_ENABLED and a test key gets an answer',
    holds: async ({ send, elite }) => {
      assertFailure(await send('/v1/call/news/top', { key: elite.live }), 503, 'API_NOT_ENABLED')
      assert.equal((await send('/v1/call/news/top', { key: elite.test })).status, 200)
    },
  },
  {
    says: 'the caps are 60 requests an hour for look-ups of users of a code host and 10 a minute for its search',
    holds: async ({ send }) => {
      const capsOf = async (slug: string) =>
        (await send(`/v1/catalog/${slug}`)).body.limits.rates.map(({ max, seconds }: Record<string, number>) => [
          max,
          seconds,
        ])
      assert.deepEqual((await capsOf('code-host-user'))[0], [60, 3_600])
      assert.deepEqual((await capsOf('code-host-search'))[0], [10, 60])
    },
  },
  ...Object.entries(specTable).map(
    ([slug, endpoints]): Statement => ({
      says: `${slug} takes the parameters of the specification within their bounds and answers its data fields`,
      holds: async (world) => {
        for (const [path, endpoint] of Object.entries(endpoints)) {
          await checkEndpoint(world, `/v1/call/${slug}${path}`, endpoint)
        }
      },
    }),
  ),
]
