import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Catalog, loadCatalog } from '../../src/catalog/catalog.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { answerFromExample } from '../../workers/jobs/example-answer.ts'
import { isFailure, type Success } from '../../workers/upstream/outcome.ts'

type Members = Record<string, unknown>

describe('the answer to a test key', () => {
  let catalog: Catalog
  before(async () => {
    catalog = await loadCatalog(new Map())
  })

  async function answer(slug: string, path: string, parameters: Members): Promise<Members> {
    return JSON.parse((await outcomeOf(slug, path, parameters)).body.toString()).data
  }

  async function outcomeOf(
    slug: string,
    path: string,
    parameters: Members,
    options: Partial<CallJob> = {},
  ): Promise<Success> {
    const api = catalog.get(slug) ?? assert.fail(slug)
    const endpoint = api.endpoints.get(path) ?? assert.fail(path)
    const defaults = endpoint.parameters.flatMap(({ name, schema }) =>
      schema.default === undefined ? [] : [[name, schema.default]],
    )
    const given = { ...Object.fromEntries(defaults), ...parameters }
    const now = Date.parse(endpoint.declaration.example.now ?? new Date().toISOString())
    const completed = endpoint.declaration.complete?.(given, { now }) ?? given
    const job = { parameters: completed, raw: false, extra: [], ...options } as unknown as CallJob
    const outcome = await answerFromExample({ api, endpoint }, job, {
      signal: new AbortController().signal,
      progress: { reach: 'unsent' as const },
    })
    if (isFailure(outcome)) assert.fail(outcome.code)
    return outcome
  }

  it('a test key gets the recorded data for the recorded call of every endpoint', async () => {
    for (const { slug, endpoints } of catalog.values()) {
      for (const { path, declaration: endpoint } of endpoints.values()) {
        const { parameters, data } = endpoint.example
        assert.deepEqual(await answer(slug, path, parameters), JSON.parse(JSON.stringify(data)), slug + path)
      }
    }
  })

  it("the answer to a test key carries the caller's value in each member that repeats a parameter", async () => {
    const pair = await answer('currency', '/pair', { from: 'GBP', to: 'JPY' })
    assert.deepEqual([pair.from, pair.to], ['GBP', 'JPY'])
    assert.equal((await answer('countries', '/info', { name: 'France' })).name, 'France')
    const weather = await answer('weather', '/current', { latitude: 52.52, longitude: 13.41 })
    assert.deepEqual([weather.latitude, weather.longitude, weather.temperature_c], [52.52, 13.41, 15.3])
    const { holidays } = (await answer('public-holidays', '/holidays', { year: 2030, countryCode: 'FR' })) as {
      holidays: Members[]
    }
    assert.ok(holidays.length > 0 && holidays.every(({ country_code }) => country_code === 'FR'))
    assert.equal((await answer('tech-forum', '/story', { id: '1' })).id, 1)
  })

  it('a test key reads for which parameters its answer was recorded, unless the answer is right for the parameters of its call', async () => {
    const recordedFor = async (slug: string, path: string, parameters: Members, options?: Partial<CallJob>) =>
      (await outcomeOf(slug, path, parameters, options)).recordedFor
    for (const { slug, endpoints } of catalog.values()) {
      for (const { path, declaration: endpoint } of endpoints.values()) {
        assert.equal(await recordedFor(slug, path, endpoint.example.parameters), undefined, slug + path)
        const extra: CallJob['extra'] = [['sort', 'asc']]
        const parameters = Object.keys(endpoint.example.parameters)
        const other = await recordedFor(slug, path, endpoint.example.parameters, { extra })
        assert.ok(other !== undefined && parameters.every((name) => other.includes(`${name}=`)), slug + path)
      }
    }
    const elsewhere = { latitude: 52.52, longitude: 13.41 }
    assert.equal(await recordedFor('weather', '/current', elsewhere), 'latitude=40.71&longitude=-74.01')
    assert.equal(await recordedFor('weather', '/current', elsewhere, { raw: true }), 'latitude=40.71&longitude=-74.01')
    assert.equal(await recordedFor('countries', '/info', { name: 'France' }), 'name=India')
    assert.equal(await recordedFor('mock-data', '/posts', { id: 7 }), 'id=1')
    // No recording has a currency of this code.
    assert.equal(await recordedFor('currency', '/pair', { from: 'GBP', to: 'ZZZ' }), 'from=USD&to=INR')
  })

  it('a test key gets the right rate for every pair of currencies in the recordings', async () => {
    const { rates } = await answer('currency', '/latest', {})
    const known: Record<string, number> = { EUR: 1, ...(rates as Record<string, number>) }
    for (const from of Object.keys(known)) {
      for (const to of ['EUR', 'USD', 'JPY', 'GBP'].filter((code) => code !== from)) {
        const pair = await answer('currency', '/pair', { from, to })
        assert.deepEqual([pair.from, pair.to, pair.date], [from, to, '2025-04-04'])
        const right = Number(known[to]) / Number(known[from])
        assert.ok(Math.abs(Number(pair.rate) / right - 1) < 1e-4, `${from} ${to} ${pair.rate}`)
      }
    }
    assert.equal((await answer('currency', '/pair', { from: 'USD', to: 'EUR' })).rate, 0.9044)
  })

  it('a test key gets the time of every zone at the recorded moment', async () => {
    const clockIn = (timezone: string) => answer('timezone', '/current', { timezone })
    const { datetime, dst_active, day_of_week, date, time } = await clockIn('Australia/Sydney')
    assert.deepEqual([datetime, dst_active, day_of_week], ['2026-03-19T00:02:26.3823348', true, 'Thursday'])
    assert.deepEqual([date, time], ['2026-03-19', '00:02'])
    assert.equal((await clockIn('Asia/Kolkata')).datetime, '2026-03-18T18:32:26.3823348')
    assert.equal((await clockIn('America/New_York')).dst_active, true)
  })

  it('a test key gets as many items as its call requests, of the requested kind', async () => {
    const count = async (slug: string, path: string, parameters: Members, name: string) =>
      ((await answer(slug, path, parameters))[name] as Members[]).length
    assert.equal(await count('news', '/search', { q: 'google', max: 1 }, 'articles'), 1)
    assert.equal(await count('code-host-search', '/repos', { q: 'org:hub4j-test-org', per_page: 1 }, 'repositories'), 1)
    assert.equal(await count('trivia', '/questions', { amount: 2 }, 'results'), 2)
    const { results } = (await answer('trivia', '/questions', { amount: 50, difficulty: 'hard' })) as {
      results: Members[]
    }
    assert.ok(results.length > 0 && results.every(({ difficulty }) => difficulty === 'hard'))
  })

  it('the value of a parameter does not replace a member of the data that has the same name and another meaning', async () => {
    const { country } = await answer('development-indicators', '/gdp', { country: 'DE' })
    assert.equal(country, 'Mexico')
  })

  it('a test key gets data of the recorded shape whatever the parameters of its call', async () => {
    const shape = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shape)
      if (typeof value !== 'object' || value === null) return typeof value
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shape(member)]))
    }
    for (const { slug, endpoints } of catalog.values()) {
      for (const { path, declaration: endpoint, parameters } of endpoints.values()) {
        const { example } = endpoint
        const others = parameters.flatMap(({ name, schema }): [string, unknown][] => {
          const recorded = (example.parameters as Members)[name]
          if (typeof recorded === 'number') return [[name, Math.min(recorded + 1, schema.maximum ?? recorded + 1)]]
          return recorded === undefined ? [] : [[name, schema.enum?.at(-1) ?? recorded]]
        })
        const given = { ...(example.parameters as Members), ...Object.fromEntries(others) }
        assert.deepEqual(shape(await answer(slug, path, given)), shape(JSON.parse(JSON.stringify(example.data))))
      }
    }
  })
})
