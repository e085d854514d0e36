import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { amount, integer, isObject, members, text, texts, webAddress } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter, trimmed } from '../catalog/parameter-values.ts'
import { param } from '../catalog/parameters.ts'
import { authFailed, failed, notFound, overLimit, type ResponseClass } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/crypto-prices.json' with { type: 'json' }

const IDS_MAX = 250

/**
 * Tickers that callers often try and that are not coin ids. Other unknown ids simply have no price.
 */
const coinIdOfTicker: Record<string, string> = {
  btc: 'bitcoin',
  eth: 'ethereum',
  usdt: 'tether',
  bnb: 'binancecoin',
  sol: 'solana',
  xrp: 'ripple',
  usdc: 'usd-coin',
  ada: 'cardano',
  doge: 'dogecoin',
}

/** Other routes of the upstream, which have the place of a coin id in the path. */
const ROUTES = new Set(words('list markets categories top_gainers_losers'))

const price = record(
  {
    usd: field.amount('usd', 'Price in US dollars; a coin without a price is in `missing`'),
    usd_market_cap: field.amount(({ usd_market_cap }) => known(usd_market_cap), 'US dollars; null if it is not known'),
    usd_24h_vol: field.amount('usd_24h_vol', 'Traded in 24 hours, US dollars'),
    usd_24h_change: field.number('usd_24h_change', 'Percent'),
    last_updated_at: field.number('last_updated_at', 'Seconds since the epoch'),
  },
  'Figures of the coin',
)

const prices = record({
  prices: field.computed(Type.Record(Type.String(), price.schema, { description: 'Keyed by coin id' }), ({ coins }) =>
    Object.fromEntries(Object.entries(members(coins)).map(([id, coin]) => [id, price.read(coin)])),
  ),
  missing: field.texts('missing', 'Requested ids without a price'),
})

const coin = record({
  id: required.notNull(field.text('id', 'Coin id, as `ids` of /price takes it')),
  name: field.text('name', 'Name of the coin'),
  symbol: field.text('symbol', 'Ticker, lower case'),
  ath_usd: field.amount('market_data.ath.usd', 'All-time high'),
  market_cap_usd: field.amount(
    ({ market_data }) => known(members(members(market_data).market_cap).usd),
    'US dollars; null if it is not known',
  ),
  price_usd: field.amount('market_data.current_price.usd', 'US dollars'),
  volume_24h_usd: field.amount('market_data.total_volume.usd', 'Traded in 24 hours, US dollars'),
  ath_date: field.text('market_data.ath_date.usd', 'ISO 8601, UTC'),
  price_change_percentage_24h: field.number('market_data.price_change_percentage_24h', 'Percent'),
  market_cap_rank: field.wholeNumber('market_cap_rank', '1 for the largest'),
  circulating_supply: field.amount(
    ({ market_data }) => known(members(market_data).circulating_supply),
    'Coins in circulation; null if it is not known',
  ),
  max_supply: field.amount('market_data.max_supply', 'Coins that can ever exist; null if unbounded'),
  // Without a logo the source names a file that is nowhere, "missing_large.png".
  image_url: field.text(({ image }) => webAddress(members(image).large), 'Logo of the coin'),
  homepage: field.text(
    ({ links }) => texts(members(links).homepage).find((url) => url !== ''),
    'Website of the project',
  ),
  description: field.text('description.en', 'English'),
  last_updated: field.text('last_updated', 'ISO 8601, UTC'),
})

export default upstream({
  displayName: 'Crypto prices',
  category: 'finance',
  description: 'US dollar prices and market figures of crypto coins, from CoinGecko.',
  tags: ['crypto', 'bitcoin', 'prices', 'market', 'coins'],
  keywords: words('ethereum btc eth dogecoin token blockchain altcoin market cap'),
  terms: {
    summary: 'CoinGecko API terms apply; attribution with a link is required. A public service should use a paid plan.',
    url: 'https://www.coingecko.com/en/api_terms',
    attribution: 'Data provided by CoinGecko (https://www.coingecko.com)',
  },
  baseUrl: 'https://api.coingecko.com',
  credential: {
    accessMode: 'byok_available',
    in: 'header',
    name: 'x-cg-demo-api-key',
    // The Demo plan.
    caps: {
      concurrency: 5,
      rates: [
        { max: 100, seconds: 60 },
        { max: 10_000, seconds: 2_678_400 },
      ],
    },
  },
  // Without a key there is no published number; 8 to 10 quick requests have been enough for a 429.
  caps: { concurrency: 2, rates: [{ max: 6, seconds: 60 }] },
  probe: { request: { path: path`/api/v3/ping` }, everySeconds: 300 },
  reservedParameters: words('x_cg_demo_api_key x_cg_pro_api_key symbols names'),
  mayLack: words(
    'usd_market_cap max_supply market_cap_rank market_cap_usd circulating_supply homepage image_url description volume_24h_usd price_change_percentage_24h ath_usd ath_date',
  ),
  classify,
  endpoints: {
    '/price': endpoint({
      description: 'Current US dollar price, market capitalisation, volume and change of one or more coins.',
      parameters: {
        ids: param.text('Comma-separated coin ids such as bitcoin,usd-coin; not ticker symbols', {
          maxLength: 5_000,
          normalize: coinIds,
        }),
      },
      data: prices,
      cache: { ...freshFor(60), staleIfErrorSeconds: lifetime.hour, notFoundSeconds: 300 },
      request: ({ ids }) => ({
        path: path`/api/v3/simple/price`,
        query: {
          ids,
          vs_currencies: 'usd',
          include_market_cap: 'true',
          include_24hr_vol: 'true',
          include_24hr_change: 'true',
          include_last_updated_at: 'true',
        },
      }),
      readFrom: ({ body, parameters }) => {
        if (!isObject(body)) return undefined
        // A coin is an object.
        if (typeof body.error === 'string') return failed()
        const ids = parameters.ids.split(',')
        const known = ids.filter((id) => amount(members(body[id]).usd) !== null)
        if (known.length === 0) {
          const isOfCoins = Object.entries(body).every(([id, found]) => ids.includes(id) && isWithoutPrice(found))
          return isOfCoins
            ? notFound('No price for any of these coin ids; ticker symbols are not accepted.')
            : undefined
        }
        const coins = known.map((id) => [id, body[id]])
        return { coins: Object.fromEntries(coins), missing: ids.filter((id) => !known.includes(id)) }
      },
      example: recordings['/price'],
    }),
    '/coin': endpoint({
      description: 'One coin: identity, all-time high, market capitalisation and current price in US dollars.',
      parameters: { id: param.text('Coin id such as bitcoin; not a ticker symbol', { normalize: pathOfCoin }) },
      data: coin,
      cache: { ...freshFor(300), staleIfErrorSeconds: lifetime.day, notFoundSeconds: lifetime.hour },
      // Without these flags the answer is hundreds of kilobytes of translations and tickers.
      request: ({ id }) => ({
        path: path`/api/v3/coins/${id}`,
        query: {
          localization: 'false',
          tickers: 'false',
          market_data: 'true',
          community_data: 'false',
          developer_data: 'false',
          sparkline: 'false',
        },
      }),
      isNotFound: ({ body }) => members(body).error === 'coin not found',
      readFrom: ({ body, parameters }) => (text(members(body).id)?.toLowerCase() === parameters.id ? body : undefined),
      example: recordings['/coin'],
    }),
  },
})

/**
 * Errors stand in `status.error_code`, also under HTTP 200; there is a coin with the id `status`,
 * without such a code.
 */
function classify({ status, body }: UpstreamResponse): ResponseClass | undefined {
  if (status === 403 && body === undefined) return failed() // the firewall in front of the API, not the key
  if (status < 200 || status > 299) return undefined
  const code = integer(members(members(body).status).error_code)
  if (code === null) return undefined
  if (code === 429) return overLimit()
  return code === 401 || code === 403 || isKeyError(code) ? authFailed() : failed()
}

/** A price that is not a number means an unreadable answer, not a missing price. */
function isWithoutPrice(coin: unknown): boolean {
  if (coin === null || (Array.isArray(coin) && coin.length === 0)) return true
  const isKnown = isObject(coin) && Object.keys(coin).every((name) => /^(?:usd(?:_|$)|last_updated_at$)/.test(name))
  return isKnown && (coin.usd ?? null) === null
}

/** The source writes 0 for the supply of a coin that it has not checked, and so for its value. */
function known(figure: unknown): unknown {
  return figure === 0 ? undefined : figure
}

/** Missing key, plan without the endpoint, key of the other host. */
function isKeyError(code: number): boolean {
  return code === 10_002 || code === 10_005 || code === 10_010 || code === 10_011
}

/**
 * The ids of a comma-separated list, sorted and without duplicates, so that the same coins are the
 * same call.
 */
function coinIds(parameter: string, list: string): string {
  const given = list.split(',').filter((part) => part.trim() !== '')
  if (given.length === 0) throw new InvalidParameter(parameter, 'it names no coin')
  const ids = [...new Set(given.map((part) => coinId(parameter, part)))].sort()
  if (ids.length > IDS_MAX) throw new InvalidParameter(parameter, `it has more than ${IDS_MAX} coins`)
  const ticker = ids.find((id) => Object.hasOwn(coinIdOfTicker, id))
  if (ticker !== undefined)
    throw new InvalidParameter(parameter, `${ticker} is a ticker symbol, the coin id is ${coinIdOfTicker[ticker]}`)
  return ids.join(',')
}

/** A coin id that stands in the path. */
function pathOfCoin(parameter: string, given: string): string {
  const id = coinId(parameter, given)
  if (ROUTES.has(id)) throw new InvalidParameter(parameter, 'it is not a coin id, like usd-coin')
  return id
}

function coinId(parameter: string, given: string): string {
  const id = trimmed(parameter, given).toLowerCase()
  // Only what would be read as several ids, or as another path.
  if (!/^[^\s\p{C},;/\\?#%&]+$/u.test(id) || /^\.+$/.test(id))
    throw new InvalidParameter(
      parameter,
      'it is not a coin id, like usd-coin: an id has no blanks, dots alone or , ; / \\ ? # % &',
    )
  return id
}
