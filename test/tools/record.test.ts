import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import recordings from '../../src/upstreams/recordings/currency.json' with { type: 'json' }
import { withAnswers, withData } from './record.ts'

const currency = (await loadUpstreams(['currency'])).get('currency') ?? assert.fail()

test('the data of a recording are what the fields read from its answer', () => {
  const stale = { ...recordings, '/pair': { ...recordings['/pair'], data: {} } }
  assert.deepEqual(withData(currency, stale), recordings)
  const changed = {
    '/pair': { ...recordings['/pair'], response: { date: '2026-09-14', rates: { INR: 96 } }, data: {} },
  }
  assert.deepEqual(withData(currency, changed)['/pair']?.data, {
    ...{ from: null, to: 'INR', rate: 96, date: '2026-09-14' },
  })
})

test('a recorded answer that is no data is an error that names the endpoint', () => {
  const broken = { '/pair': { ...recordings['/pair'], response: { rates: {} } } }
  assert.throws(() => withData(currency, broken), /^Error: \/pair: the recorded answer is UPSTREAM_INVALID_RESPONSE$/)
})

test('new answers are the bodies of the upstream, fetched through a gateway with the recorded parameters', async () => {
  const asked: unknown[] = []
  const server = createServer((request, response) => {
    asked.push([request.url, request.headers['x-api-key'], request.headers.accept])
    response.end(JSON.stringify({ rates: { INR: 97 } }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { '/pair': pair } = recordings
  const fresh = await withAnswers('currency', { '/pair': pair }, { url, key: 'k' })
  assert.deepEqual(fresh, { '/pair': { ...pair, response: { rates: { INR: 97 } } } })
  assert.deepEqual(asked, [['/v1/call/currency/pair?from=USD&to=INR', 'k', 'application/vnd.upstream+json']])
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})
