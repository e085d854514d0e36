import assert from 'node:assert/strict'
import { it } from 'node:test'
import { pino } from 'pino'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { openOtlpTracing } from '../../src/telemetry/otlp.ts'
import { addressedTarget, noteArrival } from '../../src/telemetry/record-call.ts'
import { startAttemptSpan, startCallSpan } from '../../src/telemetry/spans.ts'

const open = (traceRatio: number) =>
  openOtlpTracing({
    process: 'web',
    traceRatio,
    baseUrl: 'https://gateway.example',
    log: pino({ level: 'silent' }),
  })
const origin = { requestId: 'req_test', via: 'call' } as const
const known = { origin, slug: 'weather', endpoint: '/current' }

it('a call that the sampler leaves out has no span, and its job carries nothing of a trace', async () => {
  const tracing = open(0)
  assert.equal(startCallSpan(tracing, { headers: {} }, known), undefined)
  // The trace of a caller may say that it is sampled; it decides nothing here.
  const headers = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }
  assert.equal(startCallSpan(tracing, { headers }, known), undefined)
  await tracing.close()
})

it('an attempt of a call that the sampler left out begins no trace of its own', async () => {
  const tracing = open(1)
  const attempt = { slug: 'weather', source: 'call', resends: 0 } as const
  assert.equal(startAttemptSpan(tracing, { origin: 'https://api.example' }, attempt), undefined)
})

it('an address has the port of its scheme if it names none', () => {
  assert.deepEqual(open(1).address, {
    'url.scheme': 'https',
    'server.address': 'gateway.example',
    'server.port': 443,
  })
})

it('without a collector, nothing of a request is read for a trace', async () => {
  const request = {
    url: '/v1/call/weather/current?latitude=1',
    get method(): string {
      throw new Error('the method was read')
    },
    get headers(): Record<string, string> {
      throw new Error('the headers were read')
    },
  }
  const catalog = await loadCatalog(new Map())
  assert.equal(noteArrival({ catalog, telemetry: { tracing: undefined } }, origin, request).span, undefined)
  assert.deepEqual(addressedTarget(catalog, request), { slug: 'weather', endpoint: '/current' })
})
