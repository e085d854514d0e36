/** What happens if a source renames members of its answers and still answers 200. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const POST = { userId: 1, id: 1, title: 't', body: 'b' }

describe('a source that renames members of its answers', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let upstreams: Map<string, Upstream>
  let accounts: Account[]
  let consoleUrl: string

  before(async () => {
    upstream = await startUpstreamServer()
    upstreams = await loadUpstreams()
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        ...upstream.environment(...upstreams.keys()),
        UPSTREAM_WEATHER_CAPS: 'concurrency=50,10000/1',
        UPSTREAM_MOCK_DATA_CAPS: 'concurrency=50,10000/1',
      },
    })
    accounts = await Promise.all(Array.from({ length: 3 }, () => signUp(gateway, 'business')))
    consoleUrl = await gateway.startConsole()
    await until(async () => (await send(gateway, '/readyz')).status === 200)
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  const token = () => gateway.environment.OPERATOR_TOKEN ?? ''
  const overview = async () => (await send(gateway, '/v1/operator/overview', { url: consoleUrl, token: token() })).body
  const rowOf = async (slug: string) => (await overview()).upstreams.find((row: { slug: string }) => row.slug === slug)
  const detail = async (slug: string) => (await send(gateway, `/v1/catalog/${slug}`)).body
  const recorded = (slug: string, path: string) =>
    structuredClone(upstreams.get(slug)?.endpoints[path]?.example.response)
  let places = 0
  /** Each call is for another place, so that no stored answer serves it. */
  const weather = async (who: number, extra = '') => {
    places += 1
    const path = `/v1/call/weather/current?latitude=${(places / 10).toFixed(1)}&longitude=5${extra}`
    const answer = await send(gateway, path, { key: accounts[who % accounts.length]?.live ?? '' })
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data
  }
  const play = (lacksTemperature: boolean) => {
    const answer = recorded('weather', '/current') as { current_weather: Record<string, unknown> }
    if (lacksTemperature) delete answer.current_weather.temperature
    upstream.play('weather', () => answer)
  }

  it('a source that renames members of its answers is Degraded, with the members and the time in catalog and console, and its answers still go out', async () => {
    play(false)
    await weather(0)
    play(true)
    for (let call = 0; call < 5; call += 1) assert.equal((await weather(call)).temperature_c, null)
    await until(async () => (await detail('weather')).health.status === 'Degraded')
    await until(async () => (await rowOf('weather')).health.status === 'Degraded')
    const row = await rowOf('weather')
    assert.deepEqual([row.health.status, row.health.cause], ['Degraded', 'lacks `temperature_c` (/current)'])
    assert.ok(Math.abs(Date.parse(row.health.since) - Date.now()) < 60_000)
    const { problems } = await overview()
    assert.ok(
      problems.some(({ text }: { text: string }) =>
        /^weather has been degraded for .*: answers lack `temperature_c` \(\/current\)$/.test(text),
      ),
      JSON.stringify(problems),
    )
    const page = await gateway.apps.get(gateway.url)?.inject('/apis/weather')
    assert.match(page?.body ?? '', /[Aa]nswers lack `temperature_c`/)
    play(false)
    for (let call = 0; call < 3; call += 1) await weather(call)
    await until(async () => (await detail('weather')).health.status === 'Healthy')
  })

  it('the calls of one account, or calls with undeclared parameters, cannot make a source count as having renamed members', async () => {
    play(true)
    for (let call = 0; call < 6; call += 1) await weather(call, '&undeclared=1')
    play(false)
    // The answers of one account lead to a probe, whose answer is as recorded.
    play(true)
    for (let call = 0; call < 4; call += 1) await weather(0)
    assert.equal((await detail('weather')).health.status, 'Healthy')
    play(false)
    await weather(1)
  })

  it('a source that has no data for a place does not count as having renamed members, whoever requests such places', async () => {
    const whole = recorded('weather', '/current') as { current_weather: Record<string, unknown> }
    const { latitude } = upstreams.get('weather')?.endpoints['/current']?.example.parameters ?? assert.fail()
    const isRecordedPlace = (url: string) => url.includes(`latitude=${latitude}&`)
    upstream.play('weather', ({ url }) =>
      isRecordedPlace(url) ? whole : { ...whole, current_weather: { ...whole.current_weather, windspeed: null } },
    )
    const probed = () => upstream.arrivalsOf('weather').filter(({ url }) => isRecordedPlace(url)).length
    const before = probed()
    for (let call = 0; call < 6; call += 1) assert.equal((await weather(call)).windspeed_kmh, null)
    await until(() => probed() > before)
    for (let call = 0; call < 6; call += 1) assert.equal((await weather(call)).windspeed_kmh, null)
    assert.equal((await rowOf('weather')).health.status, 'Healthy')
    assert.equal(probed(), before + 1)
  })

  it('a source that renames members of its answers to one account is tried by a probe, which decides', async () => {
    const { address: _, ...user } = recorded('mock-data', '/users') as Record<string, unknown>
    upstream.play('mock-data', ({ url }) => (url.startsWith('/users') ? user : POST))
    for (let id = 1; id <= 8; id += 1) {
      const answer = await send(gateway, `/v1/call/mock-data/users?id=${id}`, { key: accounts[0]?.live ?? '' })
      assert.equal(answer.status, 200)
      // The other endpoint is unchanged.
      assert.equal(
        (await send(gateway, `/v1/call/mock-data/posts?id=${id}`, { key: accounts[0]?.live ?? '' })).status,
        200,
      )
    }
    await until(async () => (await rowOf('mock-data')).health.status === 'Degraded')
    const { cause } = (await rowOf('mock-data')).health
    assert.match(cause, /^lacks `address\.\w+`, .*\(\/users\)$/)
    assert.doesNotMatch(cause, /posts/)
  })
})
