import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

interface Span {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId?: string
  links?: { traceId: string; spanId: string }[]
  service: string
  attributes: Record<string, unknown>
  failed: boolean
}

/** Kinds as OTLP numbers them. */
const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer']

/** A collector that keeps the spans it is sent: OTLP over HTTP, as JSON. */
async function startCollector(): Promise<{ url: string; spans: Span[]; server: Server }> {
  const spans: Span[] = []
  const server = createServer(async (request, response) => {
    const { resourceSpans } = JSON.parse(await text(request))
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = attributeOf(resource.attributes, 'service.name')
      for (const span of scopeSpans.flatMap((scope: { spans: object[] }) => scope.spans)) {
        const attributes = Object.fromEntries(
          span.attributes.map(({ key }: { key: string }) => [key, attributeOf(span.attributes, key)]),
        )
        spans.push({ ...span, service, attributes, failed: span.status?.code === 2 })
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, server }
}

function attributeOf(attributes: { key: string; value: Record<string, unknown> }[], key: string): string {
  return String(Object.values(attributes.find((attribute) => attribute.key === key)?.value ?? {})[0])
}

/** A span and the spans below it, each under the kind of its process. */
function treeOf(spans: Span[], { name, kind, service, spanId, failed }: Span): object {
  const process = service.replace('agent-api-gateway-', '')
  const below = spans
    .filter(({ parentSpanId }) => parentSpanId === spanId)
    .toSorted((a, b) => Number(b.failed) - Number(a.failed))
    .map((span) => treeOf(spans, span))
  return { [process]: `${KINDS[kind]} ${name}${failed ? ', failed' : ''}`, ...(below.length > 0 && { below }) }
}

/** The attributes of a span whose names match. */
function only(span: Span | undefined, names: RegExp): Record<string, unknown> {
  return Object.fromEntries(Object.entries(span?.attributes ?? {}).filter(([name]) => names.test(name)))
}

describe('what the service tells of itself', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let collector: Awaited<ReturnType<typeof startCollector>>
  let account: Account
  let webMetrics: string
  let workerMetrics: string

  before(async () => {
    upstream = await startUpstreamServer()
    collector = await startCollector()
    const ports = [await freePort(), await freePort()]
    gateway = await startGateway({
      workers: 0,
      environment: {
        ...upstream.environment('weather', 'ip-lookup', 'currency', 'development-indicators'),
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        METRICS_PORT: String(ports[0]),
      },
    })
    webMetrics = `http://127.0.0.1:${ports[0]}/metrics`
    workerMetrics = `http://127.0.0.1:${ports[1]}/metrics`
    await gateway.startWorker({ METRICS_PORT: String(ports[1]) })
    account = await signUp(gateway)
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
    collector.server.close()
  })

  const call = (path: string, headers: Record<string, string> = {}) =>
    send(gateway, `/v1/call/${path}`, { key: account.live, headers })
  const linesOf = (message: string) =>
    gateway.output
      .join('')
      .split('\n')
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line) => JSON.parse(line))
  const lines = () => linesOf('call')
  const metricsOf = async (url: string) => await (await fetch(url)).text()
  const spansOf = (callId: string | null) => {
    const root = collector.spans.find(({ attributes }) => attributes['agw.call_id'] === callId)
    return root ? collector.spans.filter(({ traceId }) => traceId === root.traceId) : []
  }

  it('what the service tells of itself is one trace per call, from the HTTP request through the lane to each attempt', async () => {
    let failures = 1
    upstream.play('currency', (_arrival, response) => {
      if (failures-- > 0) return void response.writeHead(500).end()
      return { amount: 1, base: 'EUR', date: '2026-01-01', rates: { USD: 1.1 } }
    })
    const [strangeTrace, strangeSpan] = ['1'.repeat(32), '2'.repeat(16)]
    const answer = await call('currency/latest?token=canary-in-query', {
      traceparent: `00-${strangeTrace}-${strangeSpan}-01`,
    })
    assert.equal(answer.status, 200)
    const callId = answer.headers.get('x-call-id')
    await until(() => spansOf(callId).length === 5)
    const spans = spansOf(callId)
    const root = spans.find(({ parentSpanId }) => !parentSpanId) ?? assert.fail()
    assert.deepEqual(treeOf(spans, root), {
      web: 'server GET /v1/call/{apiSlug}/{endpoint}',
      below: [
        {
          web: 'producer send calls',
          below: [
            { worker: 'consumer process calls', below: [{ worker: 'client GET, failed' }, { worker: 'client GET' }] },
          ],
        },
      ],
    })
    assert.deepEqual(
      root.links?.map(({ traceId, spanId }) => [traceId, spanId]),
      [[strangeTrace, strangeSpan]],
      'a caller joins no trace of ours, and is linked',
    )
    assert.deepEqual(only(root, /^(http|url|server|error)\./), {
      'http.request.method': 'GET',
      'http.route': '/v1/call/{apiSlug}/{endpoint}',
      'url.path': '/v1/call/currency/latest',
      'url.scheme': 'http',
      'server.address': 'localhost',
      'server.port': root.attributes['server.port'],
      'http.response.status_code': '200',
    })
    const processing = spans.find(({ name }) => name === 'process calls') ?? assert.fail()
    assert.deepEqual(only(processing, /^(messaging|error)\./), {
      'messaging.system': 'bullmq',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'calls',
      'messaging.message.id': callId,
    })
    const [failed, repeated] = ['500', '200'].map((status) =>
      spans.find((span) => span.name === 'GET' && span.attributes['http.response.status_code'] === status),
    )
    const {
      origin,
      hostname,
      port: upstreamPort,
    } = new URL(upstream.environment('currency').UPSTREAM_CURRENCY_URL ?? '')
    const request = {
      'http.request.method': 'GET',
      'url.scheme': 'http',
      'server.address': hostname,
      'server.port': upstreamPort,
      'url.full': `${origin}/REDACTED`,
    }
    assert.deepEqual(only(failed, /^(http|url|server|error)\./), {
      ...request,
      'http.response.status_code': '500',
      'error.type': 'UPSTREAM_ERROR',
    })
    assert.deepEqual(only(repeated, /^(http|url|server|error)\./), {
      ...request,
      'http.request.resend_count': '1',
      'http.response.status_code': '200',
    })
    const line = () => lines().find((each) => each.callId === callId)
    await until(() => line() !== undefined)
    assert.equal(line()?.trace_id, root.traceId)
  })

  it('what the service tells of itself links a stored answer to the call that it was fetched for, and marks no refusal as a failure', async () => {
    upstream.play('development-indicators', () => recorded('development-indicators'))
    const gdp = () => call('development-indicators/gdp?country=US')
    const [first, second] = [await gdp(), await gdp()].map(({ headers }) => headers.get('x-call-id'))
    const processingOf = (callId: string | null | undefined) =>
      spansOf(callId ?? null).find(({ name }) => name === 'process calls')
    await until(() => processingOf(first) !== undefined && processingOf(second) !== undefined)
    const { traceId, spanId } = processingOf(first) ?? assert.fail()
    assert.deepEqual(
      processingOf(second)?.links?.map((link) => [link.traceId, link.spanId]),
      [[traceId, spanId]],
    )
    assert.deepEqual(processingOf(first)?.links ?? [], [])

    const refused = await call('geocoding/search?q=x&limit=canary-in-query')
    const requestId = refused.headers.get('x-request-id')
    const spanOf = () => collector.spans.find(({ attributes }) => attributes['agw.request_id'] === requestId)
    await until(() => spanOf() !== undefined)
    assert.deepEqual([spanOf()?.failed, spanOf()?.attributes['agw.code']], [false, 'INVALID_PARAMETER'])
    const all = JSON.stringify(collector.spans)
    for (const secret of ['canary', account.live, account.live.slice(9, 40), account.token])
      assert.ok(!all.includes(secret), secret.slice(0, 8))
  })

  it('what the service tells of itself has a whole trace of a call of a batch and of an asynchronous call too', async () => {
    upstream.play('development-indicators', () => recorded('development-indicators'))
    const traceparent = `00-${'3'.repeat(32)}-${'4'.repeat(16)}-01`
    const calls = [{ api: 'development-indicators', endpoint: '/gdp', parameters: { country: 'FR' } }]
    const headers = { 'x-api-key': account.live, 'content-type': 'application/json', traceparent }
    const answer = await fetch(`${gateway.url}/v1/batch`, { method: 'POST', headers, body: JSON.stringify({ calls }) })
    assert.match(await answer.text(), /"status":200/)
    const later = await call('development-indicators/gdp?country=DE', { prefer: 'respond-async' })
    const below = [
      { web: 'producer send calls', below: [{ worker: 'consumer process calls', below: [{ worker: 'client GET' }] }] },
    ]
    const rootOf = (name: string, status: number) =>
      collector.spans.find(
        (span) => span.name === name && span.attributes['http.response.status_code'] === String(status),
      )
    for (const { name, kind, status } of [
      { name: 'call development-indicators', kind: 'internal', status: 200 },
      { name: 'GET /v1/call/{apiSlug}/{endpoint}', kind: 'server', status: 202 },
    ]) {
      const spans = () => collector.spans.filter(({ traceId }) => traceId === rootOf(name, status)?.traceId)
      await until(() => spans().length === 4)
      const root = rootOf(name, status) ?? assert.fail()
      assert.deepEqual(treeOf(spans(), root), { web: `${kind} ${name}`, below })
      const links = status === 200 ? ['3'.repeat(32)] : []
      assert.deepEqual(
        (root.links ?? []).map(({ traceId }) => traceId),
        links,
      )
    }
    assert.equal(later.status, 202)
    const ended = () => linesOf('asynchronous call ended').find(({ callId }) => callId === later.body.id)
    await until(() => ended() !== undefined)
    assert.equal(ended()?.trace_id, rootOf('GET /v1/call/{apiSlug}/{endpoint}', 202)?.traceId)
  })

  it('what the service tells of itself is one log line per call with who, what, how it ended and its times, and no query or secret', async () => {
    upstream.play('ip-lookup', () => ({ status: 'success', query: '9.9.9.9' }))
    const answers = [
      await call('ip-lookup/lookup?ip=9.9.9.9&token=canary-in-query'),
      await call('weather/current?latitude=north&longitude=2'),
      await call('nothing/here?password=canary-in-query'),
    ]
    for (const { headers, status, body } of answers) {
      await until(() => lines().some(({ requestId }) => requestId === headers.get('x-request-id')))
      const own = lines().filter(({ requestId }) => requestId === headers.get('x-request-id'))
      assert.equal(own.length, 1)
      const [line] = own
      assert.deepEqual([line.status, line.code, line.account], [status, body.error?.code, account.id])
      assert.ok(line.ms >= 0)
      if (status === 200) {
        assert.deepEqual(
          [line.callId, line.slug, line.endpoint, line.attempts],
          [headers.get('x-call-id'), 'ip-lookup', '/lookup', 1],
        )
        assert.ok(line.queueMs >= 0 && line.upstreamMs > 0)
      }
    }
    const all = gateway.output.join('')
    for (const secret of ['canary-in-query', account.live, account.live.slice(9, 40), account.token]) {
      assert.ok(!all.includes(secret), secret.slice(0, 8))
    }
  })

  it('the metrics of the service count calls with test keys separately, refused calls included', async () => {
    const headers = { 'x-gateway-scenario': 'rate-limited' }
    const call = (path: string, rest = {}) => send(gateway, `/v1/call/${path}`, { key: account.test, ...rest })
    assert.equal((await call('dictionary/define?word=hello', { headers })).status, 502)
    assert.equal((await call('dictionary/nowhere')).status, 404)
    const web = await metricsOf(webMetrics)
    for (const line of [
      /^agw_calls_total\{slug="dictionary",mode="test",status="502",code="UPSTREAM_RATE_LIMITED",process="web"\} 1$/m,
      /^agw_calls_total\{slug="dictionary",mode="test",status="404",code="ENDPOINT_NOT_FOUND",process="web"\} 1$/m,
    ])
      assert.match(web, line)
    assert.doesNotMatch(web, /^agw_(call_duration|queue_wait)_seconds_count\{.*slug="dictionary"/m)
  })

  it('what the service tells of itself is counted by API, status and code, on the metrics of each process', async () => {
    const web = await metricsOf(webMetrics)
    for (const line of [
      /^agw_calls_total\{slug="currency",mode="live",status="200",code="OK",process="web"\} 1$/m,
      /^agw_calls_total\{slug="-",mode="live",status="404",code="API_NOT_FOUND",process="web"\} 1$/m,
      /^agw_calls_total\{slug="weather",mode="live",status="400",code="INVALID_PARAMETER",process="web"\} 1$/m,
      /^agw_queue_wait_seconds_count\{process="web",slug="currency"\} 1$/m,
      /^agw_upstream_seconds_count\{process="web",slug="currency"\} 1$/m,
      /^agw_cache_results_total\{slug="currency",result="miss",process="web"\} 1$/m,
      /^agw_in_flight\{process="web"\} 0$/m,
      /^nodejs_eventloop_lag_p99_seconds\{process="web"\}/m,
    ])
      assert.match(web, line)
    const worker = await metricsOf(workerMetrics)
    for (const line of [
      /^agw_attempts_total\{slug="currency",result="fail",source="call",process="worker"\} 1$/m,
      /^agw_attempts_total\{slug="currency",result="ok",source="call",process="worker"\} 1$/m,
      /^agw_retries_total\{slug="currency",process="worker"\} 1$/m,
    ])
      assert.match(worker, line)
    for (const secret of [account.live, account.id, 'canary']) assert.ok(!(web + worker).includes(secret))
    assert.equal((await fetch(webMetrics.replace('/metrics', '/healthz'))).status, 200)
  })
})
