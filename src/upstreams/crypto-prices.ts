import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { integer, isObject, members, number, texts } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { authFailed, failed, invalid, notFound, overLimit, type ResponseClass } from '../catalog/response-class.ts'
import { TEXT_LENGTH_MAX } from '../catalog/shared-parameters.ts'
import { endpoint, InvalidParameter, path, type Upstream, type UpstreamResponse } from '../catalog/upstream.ts'

const IDS_MAX = 250

/** Tickers that callers try most, none of which is a coin id; others simply have no price. */
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

const price = record(
  {
    usd: field.number('usd', 'Price in US dollars; a coin without a price is in `missing`'),
    usd_market_cap: field.number('usd_market_cap', 'US dollars'),
    usd_24h_vol: field.number('usd_24h_vol', 'Traded in 24 hours, US dollars'),
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
  ath_usd: field.number('market_data.ath.usd', 'All-time high'),
  market_cap_usd: field.number('market_data.market_cap.usd', 'US dollars'),
  price_usd: field.number('market_data.current_price.usd', 'US dollars'),
  volume_24h_usd: field.number('market_data.total_volume.usd', 'Traded in 24 hours, US dollars'),
  ath_date: field.text('market_data.ath_date.usd', 'ISO 8601, UTC'),
  price_change_percentage_24h: field.number('market_data.price_change_percentage_24h', 'Percent'),
  market_cap_rank: field.wholeNumber('market_cap_rank', '1 for the largest'),
  circulating_supply: field.number('market_data.circulating_supply', 'Coins in circulation'),
  max_supply: field.number('market_data.max_supply', 'Coins that can ever exist; null where unbounded'),
  image_url: field.text('image.large', 'Logo of the coin'),
  homepage: field.text(
    ({ links }) => texts(members(links).homepage).find((url) => url !== ''),
    'Website of the project',
  ),
  description: field.text('description.en', 'English'),
  last_updated: field.text('last_updated', 'ISO 8601, UTC'),
})

const cryptoPrices: Upstream = {
  displayName: 'Crypto prices',
  category: 'finance',
  description: 'US dollar prices and market figures of crypto coins, from CoinGecko.',
  tags: ['crypto', 'bitcoin', 'prices', 'market', 'coins'],
  keywords: ['ethereum', 'btc', 'eth', 'dogecoin', 'token', 'blockchain', 'altcoin', 'market', 'cap'],
  tierRequired: 'developer',
  terms: {
    summary: 'CoinGecko API terms apply; attribution with a link is required. A public service should use a paid plan.',
    url: 'https://www.coingecko.com/en/api_terms',
    attribution: 'Data provided by CoinGecko (https://www.coingecko.com)',
  },
  baseUrl: 'https://api.coingecko.com',
  credential: {
    accessMode: 'byok_available',
    required: false,
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
  reservedParameters: ['x_cg_demo_api_key', 'x_cg_pro_api_key', 'symbols', 'names'],
  mayLack: [
    'max_supply',
    'market_cap_rank',
    'market_cap_usd',
    'circulating_supply',
    'homepage',
    'description',
    'volume_24h_usd',
    'price_change_percentage_24h',
    'ath_usd',
    'ath_date',
  ],
  classify,
  endpoints: {
    '/price': endpoint({
      description: 'Current US dollar price, market capitalisation, volume and change of one or more coins.',
      parameters: Type.Object({
        ids: Type.String({
          minLength: 1,
          maxLength: 5_000,
          description: 'Comma-separated coin ids such as bitcoin,usd-coin; not ticker symbols',
        }),
      }),
      data: prices.schema,
      cache: {
        ...freshFor(60),
        staleIfErrorSeconds: lifetime.hour,
        notFoundSeconds: 300,
      },
      complete: ({ ids }) => ({ ids: coinIds(ids).join(',') }),
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
      map: ({ body, parameters }) => {
        if (!isObject(body)) return invalid()
        // A coin is an object.
        if (typeof body.error === 'string') return failed()
        const ids = parameters.ids.split(',')
        const known = ids.filter((id) => number(members(body[id]).usd) !== null)
        if (known.length === 0) {
          const isOfCoins = Object.keys(body).every((id) => ids.includes(id))
          return isOfCoins
            ? notFound('No price for any of these coin ids; ticker symbols are not accepted.')
            : invalid()
        }
        const coins = known.map((id) => [id, body[id]])
        return prices.read({ coins: Object.fromEntries(coins), missing: ids.filter((id) => !known.includes(id)) })
      },
      example: recordedPrice(),
    }),
    '/coin': endpoint({
      description: 'One coin: identity, all-time high, market capitalisation and current price in US dollars.',
      parameters: Type.Object({
        id: Type.String({
          minLength: 1,
          maxLength: TEXT_LENGTH_MAX,
          description: 'Coin id such as bitcoin; not a ticker symbol',
        }),
      }),
      data: coin.schema,
      cache: {
        ...freshFor(300),
        staleIfErrorSeconds: lifetime.day,
        notFoundSeconds: lifetime.hour,
      },
      complete: ({ id }) => ({ id: coinId('id', id) }),
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
      map: ({ body }) => coin.read(body) ?? invalid(),
      example: recordedCoin(),
    }),
  },
}

export default cryptoPrices

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

/** Missing key, plan without the endpoint, key of the other host. */
function isKeyError(code: number): boolean {
  return code === 10_002 || code === 10_005 || code === 10_010 || code === 10_011
}

/** The ids of a comma-separated list, each once and in order: the same coins are the same call. */
function coinIds(list: string): string[] {
  const given = list.split(',').filter((part) => part.trim() !== '')
  if (given.length === 0) throw new InvalidParameter('ids', 'it names no coin')
  const ids = [...new Set(given.map((part) => coinId('ids', part)))].sort()
  if (ids.length > IDS_MAX) throw new InvalidParameter('ids', `it has more than ${IDS_MAX} coins`)
  const ticker = ids.find((id) => Object.hasOwn(coinIdOfTicker, id))
  if (ticker !== undefined)
    throw new InvalidParameter('ids', `${ticker} is a ticker symbol, the coin id is ${coinIdOfTicker[ticker]}`)
  return ids
}

function coinId(parameter: string, given: string): string {
  const id = given.trim().toLowerCase()
  // Only what would be read as several ids, or as another path.
  if (!/^[^\s\p{C},;/\\?#%&]+$/u.test(id) || /^\.+$/.test(id))
    throw new InvalidParameter(
      parameter,
      'it is not a coin id, like usd-coin: an id has no blanks, dots alone or , ; / \\ ? # % &',
    )
  return id
}

function recordedPrice() {
  return {
    parameters: { ids: 'bitcoin' },
    // biome-ignore format: as recorded
    response: {
      bitcoin: { usd: 76975, usd_market_cap: 1542226908349.8406, usd_24h_vol: 29096603418.89408, usd_24h_change: -1.4093297098441402, last_updated_at: 1779092258 },
    },
    // biome-ignore format: as recorded
    data: {
      prices: {
        bitcoin: { usd: 76975, usd_market_cap: 1542226908349.8406, usd_24h_vol: 29096603418.89408, usd_24h_change: -1.4093297098441402, last_updated_at: 1779092258 },
      },
      missing: [],
    },
  }
}

function recordedCoin() {
  return {
    parameters: { id: 'bitcoin' },
    // biome-ignore format: as recorded
    response: {
      id: 'bitcoin', symbol: 'btc', name: 'Bitcoin', web_slug: 'bitcoin', asset_platform_id: null, block_time_in_minutes: 10, hashing_algorithm: 'SHA-256',
      categories: ['Cryptocurrency', 'Layer 1 (L1)'],
      description: { en: 'Bitcoin is the first successful internet money based on peer-to-peer technology...' },
      links: { homepage: ['http://www.bitcoin.org', '', ''], whitepaper: 'https://bitcoin.org/bitcoin.pdf', subreddit_url: 'https://www.reddit.com/r/Bitcoin/' },
      image: {
        thumb: 'https://assets.coingecko.com/coins/images/1/thumb/bitcoin.png?1696501400',
        small: 'https://assets.coingecko.com/coins/images/1/small/bitcoin.png?1696501400',
        large: 'https://assets.coingecko.com/coins/images/1/large/bitcoin.png?1696501400',
      },
      genesis_date: '2009-01-03', market_cap_rank: 1, status_updates: [], last_updated: '2024-04-07T15:24:51.021Z',
      market_data: {
        current_price: { btc: 1, eur: 64375, usd: 69840 }, roi: null,
        ath: { btc: 1.003301, eur: 67405, usd: 73738 },
        ath_date: { btc: '2024-03-02T16:05:19.446Z', eur: '2024-03-14T07:10:36.635Z', usd: '2024-03-14T07:10:36.635Z' },
        market_cap: { btc: 19675377, eur: 1265825267281, usd: 1373296629498 }, market_cap_rank: 1,
        total_volume: { btc: 270165, eur: 17368113665, usd: 18867210007 },
        price_change_24h: 1619, price_change_percentage_24h: 2.37311, price_change_percentage_7d: -0.89706,
        total_supply: 21000000, max_supply: 21000000, circulating_supply: 19675377, last_updated: '2024-04-07T15:24:51.021Z',
      },
    },
    // biome-ignore format: as recorded
    data: {
      id: 'bitcoin', name: 'Bitcoin', symbol: 'btc', ath_usd: 73738, market_cap_usd: 1373296629498, price_usd: 69840, volume_24h_usd: 18867210007,
      ath_date: '2024-03-14T07:10:36.635Z', price_change_percentage_24h: 2.37311, market_cap_rank: 1, circulating_supply: 19675377, max_supply: 21000000,
      image_url: 'https://assets.coingecko.com/coins/images/1/large/bitcoin.png?1696501400', homepage: 'http://www.bitcoin.org',
      description: 'Bitcoin is the first successful internet money based on peer-to-peer technology...', last_updated: '2024-04-07T15:24:51.021Z',
    },
  }
}
