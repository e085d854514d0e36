import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { items, members } from '../../src/catalog/json.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
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

test('a text that cannot be a ticker is refused before the request', () => {
  for (const symbol of ['  ', '..', '.', 'AAPL/MSFT', 'AAPL,MSFT', 'A B', '%5EGSPC', '^'])
    assert.throws(() => quote.complete?.(withDefaults(quote, { symbol }), context), InvalidParameter, symbol)
  assert.ok(!Value.Check(quote.parameters, { symbol: '' }))
})

test('ranges and intervals match the catalog', () => {
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
  // A limiter that answers 404 says nothing of the symbol.
  assert.equal(classOf(404, undefined).code, 'UPSTREAM_ERROR')
})

test('an interval too fine for the range is UPSTREAM_REJECTED with a message that says so', () => {
  const body = {
    chart: { result: null, error: { code: 'Unprocessable Entity', description: '5m data not available …' } },
  }
  const responseClass = classOf(422, body)
  assert.equal(responseClass.code, 'UPSTREAM_REJECTED')
  assert.match(responseClass.message ?? '', /interval/)
  assert.equal(classOf(422, undefined).code, 'UPSTREAM_ERROR')
})

test('a 429 in plain text is UPSTREAM_RATE_LIMITED', () => {
  assert.equal(classOf(429, undefined).code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(classOf(429, undefined, { 'retry-after': '20' }).retryAfterMs, 20_000)
})

test('a 401 is a failure of the upstream, because no key is sent', () => {
  const error = { code: 'Unauthorized', description: 'Invalid Crumb' }
  assert.equal(classOf(401, { finance: { result: null, error } }).code, 'UPSTREAM_ERROR')
  assert.equal(classOf(401, undefined).code, 'UPSTREAM_ERROR')
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

test('the incomplete answer for an index that the upstream half knows is no quote', () => {
  for (const figures of [
    { currency: null, regularMarketPrice: 0.0 },
    { currency: '', regularMarketPrice: 0 },
    { currency: null, regularMarketPrice: null },
    {},
  ]) {
    const meta = { symbol: 'CBA', instrumentType: 'INDEX', ...figures }
    const body = { chart: { result: [{ meta, timestamp: [], indicators: { quote: [{}] } }], error: null } }
    assert.equal(classOf(200, body).code, 'UPSTREAM_NOT_FOUND', JSON.stringify(figures))
  }
  // A limiter that answers 404 says nothing of the symbol.
  assert.equal(classOf(404, undefined).code, 'UPSTREAM_ERROR')
})

test('a price of 0 in a currency is a quote', () => {
  assert.equal(dataOf({ currency: 'USD', regularMarketPrice: 0 }).price, 0)
})

test('bars without a close are left out, and other missing figures of a bar are null', () => {
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

test('the change is null if the answer has nothing to check it by', () => {
  const data = dataOf({ currency: 'USD', regularMarketPrice: 110, fulldayChange: 1.5 }, { range: '5d' })
  assert.deepEqual([data.previous_close, data.change, data.change_percent], [null, null, null])
})

test('price, previous close, change and percentage of each recorded body belong together, whatever the session', () => {
  const closed = {
    regularMarketPrice: 37.25,
    regularMarketChangePercent: -0.507,
    fulldayPrice: 37.94,
    fulldayChange: 0.5,
  }
  // biome-ignore format: a table
  const bodies: [string, Record<string, unknown>, string, (number | null)[]][] = [
    ['closed', closed, '5d', [37.44, -0.19, -0.507]],
    ['closed, of one day', { ...closed, chartPreviousClose: 37.44 }, '1d', [37.44, -0.19, -0.507]],
    ['closed, of a month', { ...closed, chartPreviousClose: 30.1 }, '1mo', [37.44, -0.19, -0.507]],
    ['closed, without the full day', { ...closed, fulldayPrice: undefined, fulldayChange: undefined }, '5d', [37.44, -0.19, -0.507]],
    ['after hours, the change counts from the regular close', { ...closed, fulldayChange: 0.69 }, '5d', [37.44, -0.19, -0.507]],
    ['before hours, the chart is of the new day', { ...closed, chartPreviousClose: 37.25 }, '1d', [37.44, -0.19, -0.507]],
    ['another close than that of the percentage', { ...closed, previousClose: 36 }, '1d', [37.44, -0.19, -0.507]],
    ['open', { regularMarketPrice: 333.923, regularMarketChangePercent: 0.07, fulldayPrice: 333.923, fulldayChange: 0.233, priceHint: 2 }, '5y', [333.69, 0.233, 0.07]],
    ['open, without a percentage', { regularMarketPrice: 333.923, fulldayPrice: 333.923, fulldayChange: 0.233 }, '5y', [333.69, 0.233, 0.0698]],
    ['a currency', { regularMarketPrice: 0.8871, regularMarketChangePercent: -0.1351, fulldayPrice: 0.8875, fulldayChange: -0.0008, priceHint: 4 }, '5d', [0.8883, -0.0012, -0.1351]],
    ['a coin of small value', { regularMarketPrice: 0.00001234, regularMarketChangePercent: 2, priceHint: 8 }, '5d', [0.0000121, 0.00000024, 2]],
    ['a coin of small value without its decimals', { regularMarketPrice: 0.00001234, regularMarketChangePercent: 2 }, '5d', [0.000012098, 0.000000242, 2]],
    ['a change that rounding hides', { regularMarketPrice: 100.01, regularMarketChangePercent: 0, previousClose: 100 }, '1d', [100, 0.01, 0]],
    ['another sign', { regularMarketPrice: 100.01, regularMarketChangePercent: -0.001, previousClose: 100 }, '1d', [100, 0.01, 0.01]],
    ['all was lost', { regularMarketPrice: 0, regularMarketChangePercent: -100 }, '5d', [null, null, null]],
    ['below zero', { regularMarketPrice: -37.63, regularMarketChangePercent: -305.97 }, '5d', [18.27, -55.9, -305.97]],
    ['a loss that cannot be', { regularMarketPrice: 10, regularMarketChangePercent: -200 }, '5d', [null, null, null]],
    ['no price', { regularMarketChangePercent: 2, previousClose: 10 }, '1d', [10, null, null]],
    ['the recorded answer', members(quoteMeta()), '1d', [333.69, 0.233, 0.07]],
  ]
  for (const [name, meta, range, expected] of bodies) {
    const { price, previous_close, change, change_percent } = dataOf({ currency: 'USD', ...meta }, { range })
    assert.deepEqual([previous_close, change, change_percent], expected, name)
    if (typeof price !== 'number' || typeof previous_close !== 'number') continue
    const tolerance = 0.0001 * Math.min(1, Math.abs(price))
    assert.ok(Math.abs(price - previous_close - Number(change)) <= tolerance, name)
    const percent = ((price - previous_close) / previous_close) * 100
    assert.ok(Math.abs(percent - Number(change_percent)) <= 0.03, `${name}: ${percent}`)
  }
})

test('the change has four decimals', () => {
  assert.equal(dataOf({ currency: 'USD', regularMarketPrice: 0.3, previousClose: 0.1 }).change, 0.2)
})

test('if the name is missing, the short name or else the symbol is the name', () => {
  assert.equal(dataOf({ currency: 'USD', symbol: 'X', shortName: 'Short', longName: '' }).name, 'Short')
  assert.equal(dataOf({ currency: 'USD', symbol: 'X' }).name, 'X')
})

test('a time that no date can hold is null', () => {
  for (const regularMarketTime of [9e15, 'soon', null, 1.5])
    assert.equal(dataOf({ currency: 'USD', regularMarketTime }).market_time, null)
})

test("range and interval are the call's", () => {
  const data = dataOf({ currency: 'USD', range: 'max', dataGranularity: '1d' }, { range: '5d', interval: '15m' })
  assert.deepEqual([data.range, data.interval], ['5d', '15m'])
})

test('the shorter the range, the shorter an answer is fresh', () => {
  const seconds = quote.cache?.seconds
  assert.ok(typeof seconds === 'function')
  const of = (range?: string) =>
    seconds(withDefaults(quote, { symbol: 'AAPL', ...(range && { range }) }), {}, { now: 0 })
  assert.deepEqual([of(), of('1d'), of('5d'), of('1mo'), of('3mo'), of('5y')], [30, 30, 300, 300, 3_600, 3_600])
})

function quoteMeta(): unknown {
  return members(items(members(members(quote.example.response).chart).result)[0]).meta
}

test('the oldest bar is the first bar of the history', () => {
  const rest = { timestamp: [1791207300, 1791207000], indicators: { quote: [{ close: [2, 1] }] } }
  const bars = dataOf({ currency: 'USD' }, {}, rest).history as { time: string; close: number }[]
  assert.deepEqual(
    bars.map(({ time, close }) => [time, close]),
    [
      ['2026-10-05T13:30:00Z', 1],
      ['2026-10-05T13:35:00Z', 2],
    ],
  )
})
