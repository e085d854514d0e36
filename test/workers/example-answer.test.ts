import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Catalog, loadCatalog } from '../../src/catalog/catalog.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { answerFromExample } from '../../workers/jobs/example-answer.ts'
import { isFailure } from '../../workers/upstream/outcome.ts'

type Members = Record<string, unknown>

describe('the answer to a test key', () => {
  let catalog: Catalog
  before(async () => {
    catalog = await loadCatalog(new Map())
  })

  async function answer(slug: string, path: string, parameters: Members): Promise<Members> {
    const api = catalog.get(slug) ?? assert.fail(slug)
    const endpoint = api.endpoints.get(path) ?? assert.fail(path)
    const completed = endpoint.endpoint.complete?.(parameters, { now: Date.now() }) ?? parameters
    const job = { parameters: completed, raw: false } as CallJob
    const outcome = await answerFromExample({ api, endpoint }, job, {
      signal: new AbortController().signal,
      progress: {},
    })
    if (isFailure(outcome)) assert.fail(outcome.code)
    return JSON.parse(outcome.body.toString()).data
  }

  it('the answer to a test key is the recorded data where the call is the recorded one, for every endpoint', async () => {
    for (const { slug, endpoints } of catalog.values()) {
      for (const { path, endpoint } of endpoints.values()) {
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

  it('the answer to a test key leaves alone what has the name of a parameter and is another thing', async () => {
    const { country } = await answer('development-indicators', '/gdp', { country: 'DE' })
    assert.equal(country, 'Mexico')
  })

  it('the answer to a test key keeps the shape of the recorded data whatever the parameters', async () => {
    const shape = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shape)
      if (typeof value !== 'object' || value === null) return typeof value
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shape(member)]))
    }
    for (const { slug, endpoints } of catalog.values()) {
      for (const { path, endpoint, parameters } of endpoints.values()) {
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
