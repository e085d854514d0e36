import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import cryptoPrices from '../../src/upstreams/crypto-prices.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const price = cryptoPrices.endpoints['/price'] ?? assert.fail()
const coin = cryptoPrices.endpoints['/coin'] ?? assert.fail()
const context = { now: 0 }

function interpret(
  endpoint: Endpoint,
  parameters: Record<string, unknown>,
  status: number,
  body: unknown,
  headers = {},
) {
  return interpretAnswers({ upstream: cryptoPrices, endpoint, hasKey: true }, [{ status, headers, body }], {
    parameters,
    context,
  })
}

function classOf(status: number, body: unknown, headers = {}, endpoint = price) {
  const result = interpret(endpoint, { ids: 'bitcoin', id: 'bitcoin' }, status, body, headers)
  return 'responseClass' in result ? result.responseClass : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

const refused = (endpoint: Endpoint, parameters: Record<string, unknown>, reason: RegExp) =>
  assert.throws(
    () => endpoint.complete?.(parameters, context),
    (error) => error instanceof InvalidParameter && reason.test(error.message),
  )

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [price, coin]) {
    const { parameters, response, data } = endpoint.example
    assert.deepEqual(interpret(endpoint, parameters, 200, response), { data })
  }
})

test('prices are requested in US dollars, with all figures and only by ids', () => {
  assert.deepEqual(price.request({ ids: 'bitcoin' }, context), {
    path: '/api/v3/simple/price',
    query: {
      ids: 'bitcoin',
      vs_currencies: 'usd',
      include_market_cap: 'true',
      include_24hr_vol: 'true',
      include_24hr_change: 'true',
      include_last_updated_at: 'true',
    },
  })
  assert.ok(cryptoPrices.reservedParameters?.includes('symbols'))
  assert.ok(cryptoPrices.reservedParameters?.includes('names'))
})

test('a coin is requested without translations, tickers and community data', () => {
  assert.deepEqual(coin.request({ id: 'bitcoin' }, context), {
    path: '/api/v3/coins/bitcoin',
    query: {
      localization: 'false',
      tickers: 'false',
      market_data: 'true',
      community_data: 'false',
      developer_data: 'false',
      sparkline: 'false',
    },
  })
})

test('ids are trimmed, lower-cased and requested once', () => {
  assert.deepEqual(price.complete?.({ ids: ' Bitcoin, usd-coin,,bitcoin ,' }, context), { ids: 'bitcoin,usd-coin' })
  assert.deepEqual(coin.complete?.({ id: ' Bitcoin ' }, context), { id: 'bitcoin' })
  assert.deepEqual(price.complete?.({ ids: 'caf\u00e9-coin,cafe\u0301-coin' }, context), { ids: 'caf\u00e9-coin' })
  assert.deepEqual(coin.complete?.({ id: 'cafe\u0301-coin' }, context), { id: 'caf\u00e9-coin' })
})

test('the same coins in another order are the same call, with the same order in the answer', () => {
  assert.deepEqual(price.complete?.({ ids: 'usd-coin,bitcoin' }, context), { ids: 'bitcoin,usd-coin' })
  assert.equal(price.cache?.key, undefined)
})

test('common ticker symbols are refused before the request, and the error names the id of the coin', () => {
  refused(price, { ids: 'btc' }, /btc is a ticker symbol, the coin id is bitcoin/)
  refused(price, { ids: 'bitcoin,ETH' }, /the coin id is ethereum/)
})

test('an id that equals a ticker is accepted', () => {
  assert.deepEqual(price.complete?.({ ids: 'dai,okb' }, context), { ids: 'dai,okb' })
  assert.deepEqual(price.complete?.({ ids: 'constructor' }, context), { ids: 'constructor' })
})

test('empty lists, impossible ids and more than 250 coins are refused', () => {
  refused(price, { ids: ' , ' }, /names no coin/)
  refused(price, { ids: 'bitcoin;ethereum' }, /not a coin id/)
  refused(price, { ids: '../ping' }, /not a coin id/)
  refused(coin, { id: 'bitcoin/tickers' }, /Parameter id .*not a coin id/)
  refused(coin, { id: '..' }, /not a coin id/)
  // Other routes of the upstream: their answers would be failures of its own.
  for (const id of ['list', 'Markets', 'categories', 'top_gainers_losers']) refused(coin, { id }, /not a coin id/)
  const ids = Array.from({ length: 251 }, (_, index) => `coin-${index}`)
  refused(price, { ids: ids.join(',') }, /more than 250/)
  assert.ok(price.complete?.({ ids: ids.slice(1).join(',') }, context))
})

test('a body of {} for unknown ids is UPSTREAM_NOT_FOUND, not an empty success', () => {
  const responseClass = classOf(200, {})
  assert.equal(responseClass.code, 'UPSTREAM_NOT_FOUND')
  assert.match(responseClass.message ?? '', /coin id/)
})

test('an object without the coins of the call is an invalid response, and is not stored', () => {
  for (const body of [{ message: 'moved' }, { success: false }, { data: [] }, { ethereum: { usd: 1 } }])
    assert.equal(classOf(200, body).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('ids without a price are listed as missing beside the ids with a price', () => {
  const result = interpret(price, { ids: 'bitcoin,nonesuch,dai' }, 200, { dai: { usd: 1 }, bitcoin: { usd: 76975 } })
  assert.ok('data' in result)
  assert.deepEqual(Object.keys(Object(result.data.prices)), ['bitcoin', 'dai'])
  assert.deepEqual(result.data.missing, ['nonesuch'])
})

test('figures that the upstream leaves out or has no value for are null', () => {
  const result = interpret(price, { ids: 'tiny' }, 200, { tiny: { usd: 0.1, usd_market_cap: null } })
  assert.deepEqual(result, {
    data: {
      prices: {
        tiny: { usd: 0.1, usd_market_cap: null, usd_24h_vol: null, usd_24h_change: null, last_updated_at: null },
      },
      missing: [],
    },
  })
  const sparse = interpret(coin, { id: 'tiny' }, 200, {
    id: 'tiny',
    market_cap_rank: null,
    market_data: { max_supply: null },
  })
  assert.ok('data' in sparse)
  assert.equal(sparse.data.market_cap_rank, null)
  assert.equal(sparse.data.ath_usd, null)
  assert.equal(sparse.data.homepage, null)
})

test('the market value of a coin whose supply is not known is null, and not 0', () => {
  const small = interpret(price, { ids: 'tiny' }, 200, { tiny: { usd: 0.1, usd_market_cap: 0, usd_24h_vol: 0 } })
  assert.ok('data' in small)
  const { usd_market_cap, usd_24h_vol } = Object(small.data.prices).tiny
  assert.deepEqual([usd_market_cap, usd_24h_vol], [null, 0])
  const market_data = { market_cap: { usd: 0 }, circulating_supply: 0, total_volume: { usd: 0 } }
  const one = interpret(coin, { id: 'tiny' }, 200, { id: 'tiny', market_data })
  assert.ok('data' in one)
  const { market_cap_usd, circulating_supply, volume_24h_usd } = one.data
  assert.deepEqual([market_cap_usd, circulating_supply, volume_24h_usd], [null, null, 0])
})

test('another coin than the requested coin is an invalid response, and a figure below zero is null', () => {
  const read = (body: unknown) => interpret(coin, { id: 'x' }, 200, body)
  assert.ok('responseClass' in read({ id: 'y' }))
  const below = read({ id: 'x', market_data: { current_price: { usd: -1 }, price_change_percentage_24h: -1 } })
  assert.ok('data' in below)
  assert.deepEqual([below.data.price_usd, below.data.price_change_percentage_24h], [null, -1])
})

test('the homepage is the first address that is not empty', () => {
  const result = interpret(coin, { id: 'x' }, 200, { id: 'x', links: { homepage: ['', 'https://x.example', ''] } })
  assert.equal('data' in result && result.data.homepage, 'https://x.example')
})

test('an unknown coin is not found', () => {
  assert.equal(classOf(404, { error: 'coin not found' }, {}, coin).code, 'UPSTREAM_NOT_FOUND')
})

test('a 429 closes the cap for as long as Retry-After says', () => {
  const responseClass = classOf(
    429,
    { status: { error_code: 429, error_message: "You've exceeded the Rate Limit." } },
    { 'retry-after': '7' },
  )
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 7_000)
})

test('a body that names the rate limit under HTTP 200 is UPSTREAM_RATE_LIMITED', () => {
  for (const endpoint of [price, coin])
    assert.equal(
      classOf(200, { status: { error_code: 429, error_message: '…' } }, {}, endpoint).code,
      'UPSTREAM_RATE_LIMITED',
    )
})

test('codes about the key are UPSTREAM_AUTH_FAILED, under any HTTP status', () => {
  for (const code of [10_002, 10_005, 10_010, 10_011]) {
    const body = { status: { error_code: code, error_message: '…' } }
    for (const status of [200, 401, 403]) assert.equal(classOf(status, body).code, 'UPSTREAM_AUTH_FAILED')
  }
})

test('another code under HTTP 200 is an error of the upstream', () => {
  assert.equal(classOf(200, { status: { error_code: 500, error_message: '…' } }).code, 'UPSTREAM_ERROR')
})

test('an error under HTTP 200 does not mean an unknown coin', () => {
  assert.equal(classOf(200, { error: 'Could not find coin prices' }).code, 'UPSTREAM_ERROR')
})

test('the coin whose id is status is no error', () => {
  const result = interpret(price, { ids: 'status' }, 200, { status: { usd: 0.02 } })
  assert.ok('data' in result)
  assert.equal(Object(result.data.prices).status.usd, 0.02)
})

test('a page of the firewall before the API is a failure, and not a refused key', () => {
  assert.equal(classOf(403, undefined).code, 'UPSTREAM_ERROR')
})

test('a body that is no object is an invalid response', () => {
  assert.equal(classOf(200, []).code, 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(classOf(200, {}, {}, coin).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('probes are rarer than once a minute, because they count for the limit', () => {
  assert.ok(cryptoPrices.probe.everySeconds > 60)
})

test('a coin without a price is listed as missing, and a call for only such coins is UPSTREAM_NOT_FOUND', () => {
  const of = (ids: string, body: unknown) => interpret(price, { ids }, 200, body)
  const drifted = [{ usd: '1' }, { price: 1 }, { usd_x: 1, eur: 1 }, { value: { usd: 1 } }, { usd: -1 }, ['a'], 'x', 1]
  for (const none of [{}, { usd: null }, { usd: null, usd_market_cap: 0 }, null, [], ...drifted]) {
    const read = of('bitcoin,deadcoin', { bitcoin: { usd: 1 }, deadcoin: none })
    assert.ok('data' in read)
    assert.deepEqual(read.data.missing, ['deadcoin'])
    assert.deepEqual(Object.keys(read.data.prices as object), ['bitcoin'])
    assert.equal(
      classOf(200, { bitcoin: none }).code,
      drifted.some((other) => other === none) ? 'UPSTREAM_INVALID_RESPONSE' : 'UPSTREAM_NOT_FOUND',
      'a price in another form is no missing price',
    )
  }
  const free = of('freecoin', { freecoin: { usd: 0 } })
  assert.ok('data' in free, 'a price of 0 is a price')
})

test('an id is refused only if it would break the request', () => {
  for (const id of ['hive_dollar', 'usd-coin', '0x', 'terra-luna-2', 'sora.token', 'a~b', '比特币', "frog's"]) {
    assert.deepEqual(price.complete?.({ ids: id }, context), { ids: id })
    assert.deepEqual(coin.complete?.({ id }, context), { id })
    assert.doesNotThrow(() => coin.request({ id }, context))
  }
  for (const id of ['a b', '...', 'a/b', 'a?b', 'a%2fb', 'a\\b', 'a\u0000b', 'a#b', 'a&b'])
    refused(coin, { id }, /not a coin id/)
})

test('the name of a file that is nowhere is no picture of a coin', () => {
  const imageOf = (large: unknown) => {
    const result = interpret(coin, { id: 'a' }, 200, { id: 'a', image: { large } })
    return 'data' in result ? result.data.image_url : assert.fail()
  }
  assert.equal(imageOf('missing_large.png'), null)
  assert.equal(imageOf('https://a.example/b.png'), 'https://a.example/b.png')
})
