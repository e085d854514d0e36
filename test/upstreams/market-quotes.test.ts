import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/upstream.ts'
import marketQuotes from '../../src/upstreams/market-quotes.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { withDefaults } from '../support/upstream-call.ts'

const quote = marketQuotes.endpoints['/quote'] ?? assert.fail()
const context = { now: 0 }

function interpret(
  status: number,
  body: unknown,
  parameters: Record<string, unknown> = { symbol: 'AAPL' },
  headers = {},
) {
  return interpretAnswers({ upstream: marketQuotes, endpoint: quote }, [{ status, headers, body }], {
    parameters: withDefaults(quote, parameters),
    context,
  })
}

function classOf(status: number, body: unknown, headers = {}) {
  const result = interpret(status, body, undefined, headers)
  return 'responseClass' in result ? result.responseClass : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

function dataOf(
  meta: Record<string, unknown>,
  parameters: Record<string, unknown> = {},
  rest: Record<string, unknown> = {},
) {
  const body = { chart: { result: [{ meta, ...rest }], error: null } }
  const result = interpret(200, body, { symbol: 'AAPL', ...parameters })
  return 'data' in result ? result.data : assert.fail(result.responseClass.code)
}

test('the recorded answer maps to the recorded data', () => {
  const { parameters, response, data } = quote.example
  assert.deepEqual(interpret(200, response, parameters), { data })
})

test('the symbol is upper-cased and percent-encoded in the path', () => {
  const paths = { aapl: 'AAPL', '^gspc': '%5EGSPC', 'JPY=X': 'JPY%3DX', 'm&m.ns': 'M%26M.NS', ' brk-b ': 'BRK-B' }
  for (const [symbol, segment] of Object.entries(paths)) {
    const parameters = quote.complete?.(withDefaults(quote, { symbol }), context) ?? {}
    assert.deepEqual(quote.request(withDefaults(quote, parameters), context), {
      path: `/v8/finance/chart/${segment}`,
      query: { range: '1d', interval: '1d' },
    })
  }
})

test('the sample request has range and interval', () => {
  assert.deepEqual(quote.request(withDefaults(quote, quote.example.parameters), context), {
    path: '/v8/finance/chart/AAPL',
    query: { range: '1d', interval: '5m' },
  })
})

test('what cannot be a ticker is refused before anything is spent', () => {
  for (const symbol of ['  ', '..', '.', 'AAPL/MSFT', 'AAPL,MSFT', 'A B', '%5EGSPC', '^'])
    assert.throws(() => quote.complete?.(withDefaults(quote, { symbol }), context), InvalidParameter, symbol)
  assert.ok(!Value.Check(quote.parameters, { symbol: '' }))
})

test('ranges and intervals are those of the catalog', () => {
  assert.ok(Value.Check(quote.parameters, { symbol: 'A', range: '5y', interval: '1wk' }))
  assert.ok(!Value.Check(quote.parameters, { symbol: 'A', range: 'max' }))
  assert.ok(!Value.Check(quote.parameters, { symbol: 'A', interval: '2m' }))
})

test('requests carry the User-Agent of a desktop browser', () => {
  assert.match(marketQuotes.headers?.['user-agent'] ?? '', /^Mozilla\/5\.0 .*Chrome\/\d+/)
})

test('an unknown symbol is not found', () => {
  const body = {
    chart: { result: null, error: { code: 'Not Found', description: 'No data found, symbol may be delisted' } },
  }
  assert.equal(classOf(404, body).code, 'UPSTREAM_NOT_FOUND')
  assert.equal(classOf(200, body).code, 'UPSTREAM_NOT_FOUND')
})

test('an interval too fine for the range is rejected, saying so', () => {
  const body = {
    chart: { result: null, error: { code: 'Unprocessable Entity', description: '5m data not available …' } },
  }
  const responseClass = classOf(422, body)
  assert.equal(responseClass.code, 'UPSTREAM_REJECTED')
  assert.match(responseClass.message ?? '', /interval/)
})

test('the plain text of a 429 is over the limit', () => {
  assert.equal(classOf(429, undefined).code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(classOf(429, undefined, { 'retry-after': '20' }).retryAfterMs, 20_000)
})

test('401 is a matter of authentication', () => {
  assert.equal(
    classOf(401, { finance: { result: null, error: { code: 'Unauthorized' } } }).code,
    'UPSTREAM_AUTH_FAILED',
  )
})

test('an error object under HTTP 200 is an error of the upstream', () => {
  assert.equal(
    classOf(200, { chart: { result: null, error: { code: 'Internal Server Error' } } }).code,
    'UPSTREAM_ERROR',
  )
})

test('an answer without a result is invalid', () => {
  for (const body of [
    {},
    [],
    { chart: null },
    { chart: { result: [], error: null } },
    { chart: { result: [{}] } },
    undefined,
  ])
    assert.equal(classOf(200, body).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('the index stub of a half-known symbol is no quote', () => {
  const meta = { currency: null, symbol: 'CBA', instrumentType: 'INDEX', regularMarketPrice: 0.0 }
  const body = { chart: { result: [{ meta, timestamp: [], indicators: { quote: [{}] } }], error: null } }
  assert.equal(classOf(200, body).code, 'UPSTREAM_NOT_FOUND')
})

test('a price of 0 in a currency is a quote', () => {
  assert.equal(dataOf({ currency: 'USD', regularMarketPrice: 0 }).price, 0)
})

test('bars without a close are gaps and left out; other missing figures of a bar are null', () => {
  const rest = {
    timestamp: [1791207000, 1791207300, 1791207600, null],
    indicators: {
      quote: [
        {
          open: [1, null, null, 4],
          high: [2, null, 3, 4],
          low: [1, null, 2, 4],
          close: [2, null, 3, 4],
          volume: [10, null],
        },
      ],
    },
  }
  assert.deepEqual(dataOf({ currency: 'USD' }, {}, rest).history, [
    { time: '2026-10-05T13:30:00Z', open: 1, high: 2, low: 1, close: 2, volume: 10 },
    { time: '2026-10-05T13:40:00Z', open: null, high: 3, low: 2, close: 3, volume: null },
  ])
})

test('without bars the history is empty', () => {
  assert.deepEqual(dataOf({ currency: 'USD' }).history, [])
})

test('the close before the range is the previous close only for a range of one day', () => {
  const meta = { currency: 'USD', regularMarketPrice: 110, chartPreviousClose: 100 }
  const day = dataOf(meta, { range: '1d' })
  assert.deepEqual([day.previous_close, day.change, day.change_percent], [100, 10, 10])
  const month = dataOf(meta, { range: '1mo' })
  assert.deepEqual([month.previous_close, month.change, month.change_percent], [null, null, null])
})

test('without a previous close the change is that of the full day', () => {
  const data = dataOf({ currency: 'USD', regularMarketPrice: 110, fulldayChange: 1.5 }, { range: '5d' })
  assert.deepEqual([data.previous_close, data.change], [null, 1.5])
})

test('the percentage is computed where the upstream leaves it out, and only from a close that is not 0', () => {
  assert.equal(dataOf({ currency: 'USD', regularMarketPrice: 1, previousClose: 3 }).change_percent, -66.6667)
  assert.equal(
    dataOf({ currency: 'USD', regularMarketPrice: 1, previousClose: 3, regularMarketChangePercent: -66 })
      .change_percent,
    -66,
  )
  assert.equal(dataOf({ currency: 'USD', regularMarketPrice: 1, previousClose: 0 }).change_percent, null)
})

test('the change has four decimals', () => {
  assert.equal(dataOf({ currency: 'USD', regularMarketPrice: 0.3, previousClose: 0.1 }).change, 0.2)
})

test('the name falls back to the short name and to the symbol', () => {
  assert.equal(dataOf({ currency: 'USD', symbol: 'X', shortName: 'Short', longName: '' }).name, 'Short')
  assert.equal(dataOf({ currency: 'USD', symbol: 'X' }).name, 'X')
})

test('a time that no date can hold is null', () => {
  for (const regularMarketTime of [9e15, 'soon', null, 1.5])
    assert.equal(dataOf({ currency: 'USD', regularMarketTime }).market_time, null)
})

test('range and interval are the ones of the call', () => {
  const data = dataOf({ currency: 'USD', range: 'max', dataGranularity: '1d' }, { range: '5d', interval: '15m' })
  assert.deepEqual([data.range, data.interval], ['5d', '15m'])
})

test('the shorter the range, the sooner an answer is old', () => {
  const seconds = quote.cache?.seconds
  assert.ok(typeof seconds === 'function')
  const of = (range?: string) =>
    seconds(withDefaults(quote, { symbol: 'AAPL', ...(range && { range }) }), {}, { now: 0 })
  assert.deepEqual([of(), of('1d'), of('5d'), of('1mo'), of('3mo'), of('5y')], [30, 30, 300, 300, 3_600, 3_600])
})
