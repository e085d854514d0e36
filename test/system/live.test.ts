import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { pauseFor, runLive } from '../tools/live.ts'
import { driftOf } from '../tools/live-drift.ts'

type Answer = { status: number; body: unknown; headers?: Record<string, string> }
type Play = (slug: string, path: string, query: URLSearchParams) => Answer

const upstreams = await loadUpstreams()
const upstreamOf = (slug: string): Upstream => upstreams.get(slug) ?? assert.fail(slug)
const endpointOf = (slug: string, path: string) => upstreamOf(slug).endpoints[path] ?? assert.fail(path)

const success = (data: unknown): Answer => ({ status: 200, body: { status: 'success', data } })
const failure = (status: number, code: string, headers: Record<string, string> = {}): Answer => ({
  status,
  headers,
  body: { status: 'error', error: { code, message: 'x', hint: 'x', docs: 'x' } },
})
const recorded: Play = (slug, path) => success(endpointOf(slug, path).example.data)

describe('live calls', () => {
  /** A gateway with all APIs, whose upstream answers as the test says. */
  let play: Play = recorded
  let calls: { slug: string; path: string; query: Record<string, string>; key: string | undefined; at: number }[] = []
  let clock = 0
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://localhost')
    const send = ({ status, body, headers }: Answer) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body))
    if (url.pathname === '/v1/catalog') {
      const data = [...upstreams].map(([api_name, { endpoints }]) => ({
        api_name,
        endpoints: Object.keys(endpoints).map((path) => ({ path })),
      }))
      return void send({ status: 200, body: { data, total: data.length } })
    }
    const [, slug = '', path = ''] = /^\/v1\/call\/([^/]+)(\/.*)$/.exec(url.pathname) ?? []
    const key = request.headers['x-api-key']
    calls.push({ slug, path, query: Object.fromEntries(url.searchParams), key: key?.toString(), at: clock })
    send(play(slug, path, url.searchParams))
  })
  let url = ''

  before(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  beforeEach(() => {
    play = recorded
    calls = []
    clock = 1_000_000
  })

  async function run(argv: string[], environment: Record<string, string> = { GATEWAY_URL: url, GATEWAY_KEY: 'k' }) {
    const lines: string[] = []
    const waits: number[] = []
    const code = await runLive({
      argv,
      environment,
      print: (line) => lines.push(line),
      now: () => clock,
      wait: async (ms) => {
        waits.push(ms)
        clock += ms
      },
    })
    return { code, lines, waits, output: lines.join('\n') }
  }

  it('live calls reach every endpoint of the catalog once, with its example parameters and the key', async () => {
    const { code, lines } = await run([])
    assert.equal(code, 0)
    const expected = [...upstreams].flatMap(([slug, { endpoints }]) =>
      Object.entries(endpoints).map(([path, { example }]) => {
        const query = Object.entries(example.parameters).map(([name, value]) => [name, String(value)])
        return JSON.stringify({ slug, path, query: Object.fromEntries(query), key: 'k' })
      }),
    )
    assert.deepEqual(calls.map(({ at, ...call }) => JSON.stringify(call)).sort(), expected.sort())
    const total = expected.length
    assert.equal(lines.at(-1), `${total} calls: ${total} answered, 0 failed, 0 skipped, 0 drifted.`)
    assert.equal(lines.filter((line) => /^\[ *\d+\/\d+\] ✓ /.test(line)).length, total, 'a progress line per call')
  })

  it('live calls stay within the limits of each upstream', async () => {
    const { waits } = await run(['geocoding', 'news', 'weather'])
    for (const [slug, spacingMs] of [
      ['geocoding', 1_000],
      ['news', 5_000],
    ] as const) {
      const [first, second] = calls.filter((call) => call.slug === slug)
      assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= spacingMs, slug)
    }
    assert.equal(waits.length, 2)
  })

  it('live calls reach only the APIs that are named', async () => {
    await run(['weather', 'currency'])
    assert.deepEqual(
      calls.map(({ slug, path }) => slug + path),
      ['currency/latest', 'weather/current', 'currency/pair'],
    )
  })

  it('live calls end in exit code 1 when one failed, and show its status and code first in the table', async () => {
    play = (slug, path, query) => (path === '/pair' ? failure(502, 'UPSTREAM_ERROR') : recorded(slug, path, query))
    const { code, lines } = await run(['currency'])
    assert.equal(code, 1)
    const heading = lines.findIndex((line) => /slug +endpoint +status +code +ms +drift/.test(line))
    assert.match(lines[heading + 1] ?? '', /^✗ +currency +\/pair +502 +UPSTREAM_ERROR +\d+$/)
    assert.match(lines[heading + 2] ?? '', /^✓ +currency +\/latest +200 +\d+$/)
    assert.equal(lines.at(-1), '2 calls: 1 answered, 1 failed, 0 skipped, 0 drifted.')
  })

  it('live calls report drift, which is a failure if an option says so', async () => {
    const { example } = endpointOf('weather', '/current')
    play = () => success({ ...example.data, temperature_c: null, windspeed_kmh: '6.6' })
    const { code, output } = await run(['weather'])
    assert.equal(code, 0)
    assert.match(output, /^✓ +weather .* temperature_c null, windspeed_kmh number → string$/m)
    assert.equal((await run(['weather', '--strict'])).code, 1)
  })

  it('live calls wait as long as the gateway asks, and call again', async () => {
    let refusals = 2
    play = (slug, path, query) =>
      refusals-- > 0 ? failure(429, 'RATE_LIMIT_EXCEEDED', { 'retry-after': '7' }) : recorded(slug, path, query)
    const { code, waits } = await run(['weather'])
    assert.equal(code, 0)
    assert.deepEqual(waits, [7_000, 7_000])
  })

  it('live calls do not wait for ever', async () => {
    play = () => failure(503, 'UPSTREAM_CAP_EXHAUSTED', { 'retry-after': '1' })
    assert.deepEqual(await run(['weather']).then(({ code, waits }) => [code, waits.length]), [1, 3])
    play = () => failure(503, 'UPSTREAM_CAP_EXHAUSTED', { 'retry-after': '3000' })
    assert.deepEqual(await run(['weather']).then(({ code, waits }) => [code, waits.length]), [1, 0])
    play = () => failure(502, 'UPSTREAM_RATE_LIMITED', { 'retry-after': '1' })
    assert.deepEqual(await run(['weather']).then(({ code, waits }) => [code, waits.length]), [1, 0])
  })

  it('live calls skip an API that this gateway has no key or plan for', async () => {
    play = () => failure(503, 'API_NOT_ENABLED')
    const { code, lines } = await run(['news'])
    assert.equal(code, 0)
    assert.equal(lines.at(-1), '2 calls: 0 answered, 0 failed, 2 skipped, 0 drifted.')
  })

  it('live calls say when an answer came from the cache', async () => {
    play = (slug, path, query) => ({ ...recorded(slug, path, query), headers: { 'cache-status': 'gateway; hit' } })
    assert.match((await run(['weather'])).output, /200 cached \d+ ms/)
  })

  it('live calls count an answer that is not JSON, and none at all, as failures', async () => {
    play = () => ({ status: 200, body: '<html>' })
    assert.match((await run(['weather'])).output, /✗ weather \/current 200 NOT_JSON/)
    play = () => ({ status: 200, body: { status: 'success' } })
    assert.match((await run(['weather', '--strict'])).output, /drift: .*data missing/)
  })

  it('live calls stop at once when the gateway refuses the key', async () => {
    play = () => failure(401, 'INVALID_API_KEY')
    const { code, output } = await run([])
    assert.deepEqual([code, calls.length], [2, 1])
    assert.match(output, /refuses the key/)
  })

  it('live calls do not start without a key, a gateway or a known API', async () => {
    assert.deepEqual(await run([], {}), {
      code: 2,
      waits: [],
      lines: ['No key: give --key or GATEWAY_KEY. See --help.'],
      output: 'No key: give --key or GATEWAY_KEY. See --help.',
    })
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    const nowhere = await run(['--url', `http://127.0.0.1:${port}`])
    assert.equal(nowhere.code, 2)
    assert.match(nowhere.output, /ECONNREFUSED.*Is the gateway running/)
    const unknown = await run(['wether'])
    assert.equal(unknown.code, 2)
    assert.match(unknown.output, /no API named wether\. It has: .*weather/)
    assert.equal((await run(['--verbose'])).code, 2)
    assert.equal(calls.length, 0)
  })

  it('live calls take address and key from flags before the environment', async () => {
    const { code } = await run(['--url', `${url}/`, '--key', 'flag', 'weather'], { GATEWAY_URL: 'http://x.invalid' })
    assert.equal(code, 0)
    assert.equal(calls[0]?.key, 'flag')
  })

  it('the command of live calls prints its usage with --help', async () => {
    const { code, output } = await run(['--help'], {})
    assert.equal(code, 0)
    for (const word of ['--url', '--key', '--strict', 'GATEWAY_URL', 'GATEWAY_KEY', 'Exit code']) {
      assert.ok(output.includes(word), word)
    }
  })

  it('live calls with a test key warn that they reach no upstream', async () => {
    assert.match((await run(['--key', 'agw_test_x', 'weather'])).output, /^A test key/)
  })
})

describe('drift', () => {
  const weather = endpointOf('weather', '/current')
  const search = endpointOf('geocoding', '/search')
  const found = search.example.data.results as Record<string, unknown>[]

  it('drift is nothing when only values differ', () => {
    assert.deepEqual(driftOf(weather, ['time'], { ...weather.example.data, time: '2030-01-01T00:00', is_day: 1 }), [])
  })

  it('drift is a field of the specification whose value is missing, and a missing value of another field is not', () => {
    const live = { ...weather.example.data, time: null, elevation_m: null }
    assert.deepEqual(driftOf(weather, ['time'], live), ['time null'])
    assert.deepEqual(driftOf(search, ['results'], { results: [] }), ['results empty'])
    assert.deepEqual(driftOf(search, [], { results: [] }), [])
  })

  it('drift is a missing member or another type at any depth', () => {
    const [first] = found
    const { osm_id, ...without } = first ?? {}
    const bounds = { south: '41.6', north: 41.7, west: 41.6, east: 41.7 }
    assert.deepEqual(driftOf(search, ['results'], { results: [{ ...without, bounding_box: bounds }] }), [
      'results[0].bounding_box.south number → string',
      'results[0].osm_id missing',
    ])
    assert.deepEqual(driftOf(search, ['results'], { results: {} }), ['results list → object'])
  })

  it('drift is not in keys that are data', () => {
    const [first] = found
    assert.deepEqual(driftOf(search, ['results'], { results: [{ ...first, address: { country: 'Georgia' } }] }), [])
  })
})

describe('the pause before a request', () => {
  const caps = {
    concurrency: 1,
    rates: [
      { max: 2, seconds: 10 },
      { max: 3, seconds: 60 },
    ],
  }

  it('the pause before a request is none while every window has room', () => {
    assert.equal(pauseFor(caps, [], 100_000), 0)
    assert.equal(pauseFor(caps, [99_000], 100_000), 0)
    assert.equal(pauseFor(caps, [80_000, 85_000], 100_000), 0)
  })

  it('the pause before a request lasts until the fullest window has room', () => {
    assert.equal(pauseFor(caps, [95_000, 99_000], 100_000), 5_000)
    assert.equal(pauseFor(caps, [50_000, 80_000, 85_000], 100_000), 10_000)
    assert.equal(pauseFor(caps, [50_000, 98_000, 99_000], 100_000), 10_000)
  })
})
