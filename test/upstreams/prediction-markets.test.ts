import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import predictionMarkets from '../../src/upstreams/prediction-markets.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { withDefaults } from '../support/upstream-call.ts'

const markets = predictionMarkets.endpoints['/markets'] ?? assert.fail()
const events = predictionMarkets.endpoints['/events'] ?? assert.fail()
const context = { now: 0 }

function interpret(endpoint: Endpoint, status: number, body: unknown, parameters = {}, headers = {}) {
  return interpretAnswers({ upstream: predictionMarkets, endpoint }, [{ status, headers, body }], {
    parameters: withDefaults(endpoint, parameters),
    context,
  })
}

function itemsOf(endpoint: Endpoint, body: unknown, parameters = {}): Record<string, unknown>[] {
  const result = interpret(endpoint, 200, body, parameters)
  if (!('data' in result)) assert.fail(result.responseClass.code)
  return Object.values(result.data).flat() as Record<string, unknown>[]
}

function classOf(status: number, body: unknown, headers = {}, endpoint = markets) {
  const result = interpret(endpoint, status, body, {}, headers)
  return 'responseClass' in result ? result.responseClass : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [markets, events]) {
    const { parameters, response, data } = endpoint.example
    assert.deepEqual(interpret(endpoint, 200, response, parameters), { data })
  }
})

test('the keyset lists are requested, open items first by volume and never closed items', () => {
  const query = { limit: 1, closed: 'false', order: 'volume24hr', ascending: 'false' }
  assert.deepEqual(markets.request(withDefaults(markets, { limit: 1 }), context), { path: '/markets/keyset', query })
  assert.deepEqual(events.request(withDefaults(events, { limit: 1 }), context), { path: '/events/keyset', query })
})

test('20 items are requested by default', () => {
  for (const endpoint of [markets, events]) {
    const request = endpoint.request(withDefaults(endpoint, {}), context)
    assert.equal(Array.isArray(request) ? undefined : request.query?.limit, 20)
  }
})

test('a limit is an integer from 1 to 100', () => {
  for (const endpoint of [markets, events]) {
    for (const limit of [1, 100]) assert.ok(Value.Check(endpoint.parameters, { limit }))
    for (const limit of [0, 101, 1.5]) assert.ok(!Value.Check(endpoint.parameters, { limit }))
  }
})

test('bare lists of the deprecated endpoints are read too', () => {
  assert.equal(itemsOf(markets, [{ id: '1' }])[0]?.id, '1')
  assert.equal(itemsOf(events, [{ id: '1' }])[0]?.id, '1')
})

test('the data have no more items than the call requests, whatever the upstream sends', () => {
  const list = Array.from({ length: 25 }, (_, index) => ({ id: String(index) }))
  assert.equal(itemsOf(markets, { markets: list }, { limit: 3 }).length, 3)
  assert.equal(itemsOf(events, { events: list }, { limit: 3 }).length, 3)
  assert.equal(itemsOf(markets, list).length, 20)
})

test('the last page, which has no cursor, is a success, and so is an empty page', () => {
  assert.deepEqual(itemsOf(markets, { markets: [] }), [])
  assert.deepEqual(itemsOf(events, { events: [] }), [])
})

test('outcomes and prices are decoded from strings of JSON', () => {
  const [item] = itemsOf(markets, [{ outcomes: '["Yes", "No"]', outcomePrices: '["0.25", "0.75"]' }])
  assert.deepEqual(item?.outcomes, [
    { name: 'Yes', price: 0.25 },
    { name: 'No', price: 0.75 },
  ])
})

test('outcomes that cannot be decoded are an empty list, and a missing price is null', () => {
  const [broken, unpriced, absent] = itemsOf(markets, [
    { outcomes: '["Yes"' },
    { outcomes: '["Yes", "No"]', outcomePrices: '["0.5", "?"]' },
    {},
  ])
  assert.deepEqual(broken?.outcomes, [])
  assert.deepEqual(unpriced?.outcomes, [
    { name: 'Yes', price: 0.5 },
    { name: 'No', price: null },
  ])
  assert.deepEqual(absent?.outcomes, [])
})

test('volume and liquidity of markets are numbers, even if the upstream sends only their texts', () => {
  const [both, textOnly] = itemsOf(markets, [
    { volume: '1.5', volumeNum: 2.5, liquidity: '3.5', liquidityNum: 4.5 },
    { volume: '1.5', liquidity: '3.5' },
  ])
  assert.deepEqual([both?.volume, both?.liquidity], [2.5, 4.5])
  assert.deepEqual([textOnly?.volume, textOnly?.liquidity], [1.5, 3.5])
})

test('members that the upstream leaves out are null', () => {
  assert.deepEqual(itemsOf(markets, [{ id: '1', liquidity: null, image: '' }]), [
    {
      id: '1',
      question: null,
      slug: null,
      condition_id: null,
      outcomes: [],
      volume: null,
      volume_24h: null,
      liquidity: null,
      best_bid: null,
      best_ask: null,
      last_trade_price: null,
      start_date: null,
      end_date: null,
      active: null,
      closed: null,
      image_url: null,
      event: null,
    },
  ])
  const [event] = itemsOf(events, [{ id: '1', image: '', tags: [{ label: 'A' }, {}, null], markets: null }])
  assert.deepEqual(
    [event?.liquidity, event?.open_interest, event?.comment_count, event?.image_url],
    [null, null, null, null],
  )
  assert.deepEqual([event?.tags, event?.markets], [['A'], []])
})

test('an answer about a bad parameter is a failure, because the gateway checks the only value of a caller', () => {
  assert.equal(classOf(422, { type: 'validation error', error: 'invalid integer' }).code, 'UPSTREAM_ERROR')
  assert.equal(
    classOf(422, { type: 'validation error', error: 'offset is not allowed on keyset endpoints' }).code,
    'UPSTREAM_ERROR',
  )
})

test('the refusal of a country or network is a failure, and not a refused key', () => {
  for (const status of [403, 451, 453]) assert.equal(classOf(status, undefined).code, 'UPSTREAM_ERROR')
})

test('a 429 closes the cap for as long as Retry-After says, even if its body is a page', () => {
  const responseClass = classOf(429, undefined, { 'retry-after': '12' })
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 12_000)
})

test('an answer without the list is invalid', () => {
  for (const body of [{}, { markets: {} }, 'OK', undefined])
    assert.equal(classOf(200, body).code, 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(classOf(200, { markets: [] }, {}, events).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('the body of a hundred events with all their markets is accepted', () => {
  assert.ok((predictionMarkets.bodyBytesMax ?? 0) > 20_000_000)
})

test('outcomes have no prices if there are fewer or more prices than outcomes', () => {
  const [item] = itemsOf(markets, [{ outcomes: '["Yes", "No"]', outcomePrices: '["0.25"]' }])
  assert.deepEqual(item?.outcomes, [
    { name: 'Yes', price: null },
    { name: 'No', price: null },
  ])
})
