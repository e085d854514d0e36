import { field, record, required, type Source } from '../catalog/fields.ts'
import { items, listedObjects, mapObjects, members, numeric } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/prediction-markets.json' with { type: 'json' }

const limit = param.integer('Items in the answer', { minimum: 1, maximum: 100, default: 20, aliases: namesOf.count })

const identity = {
  id: field.text('id', 'Number of the market, as text'),
  question: field.text('question', 'What the market decides'),
  slug: field.text('slug', 'Name in the address of its page'),
}

const outcomes = field.records(outcomesOf, 'Possible outcomes with their prices', {
  name: field.text('name', 'Name of the outcome, such as Yes'),
  price: field.numeric('price', 'From 0 to 1: the probability that the market sees'),
})

const dates = {
  start_date: field.text('startDate', 'ISO 8601, UTC'),
  end_date: field.text('endDate', 'ISO 8601, UTC; what is open may be past it, until it is decided'),
}

const standing = {
  active: field.flag('active', 'Whether it is shown and can be traded'),
  closed: field.flag('closed', 'Whether trading has ended'),
}

const markets = record({
  markets: required.records('markets', 'Open markets', {
    ...identity,
    condition_id: field.text('conditionId', 'Id of the market on its blockchain, hexadecimal'),
    outcomes,
    volume: field.numeric(({ volumeNum, volume }) => numeric(volumeNum) ?? volume, 'US dollars'),
    volume_24h: field.number('volume24hr', 'US dollars traded in 24 hours'),
    liquidity: field.numeric(
      ({ liquidityNum, liquidity }) => numeric(liquidityNum) ?? liquidity,
      'US dollars on offer',
    ),
    best_bid: field.number('bestBid', 'Highest price offered by buyers of the first outcome, 0 to 1'),
    best_ask: field.number('bestAsk', 'Lowest price asked by sellers of the first outcome, 0 to 1'),
    last_trade_price: field.number('lastTradePrice', 'Price of the latest trade, 0 to 1'),
    ...dates,
    ...standing,
    image_url: field.filledText('image', 'Picture'),
    event: field.nullableRecord(({ events }) => items(events)[0], 'Event that the market belongs to', {
      id: field.text('id', 'Number of the event, as text'),
      slug: field.text('slug', 'Name in the address of its page'),
      title: field.text('title', 'Title of the event'),
    }),
  }),
})

const events = record({
  events: required.records('events', 'Open events', {
    id: field.text('id', 'Number of the event, as text'),
    title: field.text('title', 'Title of the event'),
    slug: field.text('slug', 'Name in the address of its page'),
    description: field.text('description', 'Rules by which it is decided'),
    ...dates,
    ...standing,
    volume: field.numeric('volume', 'US dollars'),
    volume_24h: field.number('volume24hr', 'US dollars traded in 24 hours'),
    liquidity: field.numeric('liquidity', 'US dollars on offer'),
    open_interest: field.number('openInterest', 'US dollars at stake'),
    comment_count: field.wholeNumber('commentCount', 'Number of comments'),
    tags: field.texts(({ tags }) => mapObjects(tags, ({ label = [] }) => label), 'Names of its topics'),
    image_url: field.filledText('image', 'Picture'),
    markets: field.records('markets', 'Markets of the event', {
      ...identity,
      outcomes,
      volume: field.numeric(({ volumeNum, volume }) => numeric(volumeNum) ?? volume, 'US dollars traded in all'),
      ...standing,
    }),
  }),
})

export default upstream({
  displayName: 'Prediction markets',
  category: 'finance',
  description: 'Open prediction markets and events with prices, volume and liquidity, from Polymarket.',
  tags: ['prediction', 'markets', 'probability', 'events', 'betting'],
  keywords: words('election odds bet forecast win polls gamble chance outcome president'),
  terms: {
    summary: 'Public data for reading; some countries and networks are refused. Name Polymarket as the source.',
    url: 'https://docs.polymarket.com',
    attribution: 'Data by Polymarket',
  },
  baseUrl: 'https://gamma-api.polymarket.com',
  // The limit of /markets, the lower one of the two endpoints. Beyond it answers are delayed rather
  // than refused.
  caps: { concurrency: 10, rates: [{ max: 300, seconds: 10 }] },
  attemptTimeoutMs: 15_000,
  // An event carries all its markets, some of them more than a hundred.
  bodyBytesMax: 32 * 1_024 * 1_024,
  probe: { request: { path: path`/markets/keyset`, query: { limit: 1, closed: 'false' } }, everySeconds: 60 },
  mayLack: words(
    'best_bid best_ask last_trade_price start_date end_date open_interest comment_count liquidity volume_24h image_url tags',
  ),
  endpoints: {
    '/markets': endpoint({
      description: 'Open prediction markets with the highest 24-hour volume.',
      parameters: { limit },
      data: markets,
      cache: { ...freshFor(30), staleIfErrorSeconds: lifetime.hour },
      request: ({ limit }) => ({ path: path`/markets/keyset`, query: openByVolume(limit) }),
      readFrom: ({ body, parameters }) => ({ markets: listOf(body, 'markets')?.slice(0, parameters.limit) }),
      example: recordings['/markets'],
    }),
    '/events': endpoint({
      description: 'Open events (groups of markets) with the highest 24-hour volume.',
      parameters: { limit },
      data: events,
      cache: { ...freshFor(60), staleIfErrorSeconds: lifetime.hour },
      request: ({ limit }) => ({ path: path`/events/keyset`, query: openByVolume(limit) }),
      readFrom: ({ body, parameters }) => ({ events: listOf(body, 'events')?.slice(0, parameters.limit) }),
      example: recordings['/events'],
    }),
  },
})

/** Without `closed` the answer starts with settled items, or has nothing else. */
function openByVolume(limit: number) {
  return { limit, closed: 'false', order: 'volume24hr', ascending: 'false' }
}

/** The objects of an answer, whether wrapped (keyset pages) or bare (the deprecated lists). */
function listOf(body: unknown, key: string): Source[] | undefined {
  return listedObjects(Array.isArray(body) ? body : members(body)[key])
}

function outcomesOf(market: Source): Source[] {
  const names = encodedList(market.outcomes)
  const prices = encodedList(market.outcomePrices)
  // With another number of prices, nobody knows which outcome a price belongs to.
  return names.map((name, index) => ({ name, price: names.length === prices.length ? prices[index] : null }))
}

/** A list that stands in the answer as a string of JSON. */
function encodedList(value: unknown): unknown[] {
  if (typeof value !== 'string') return items(value)
  try {
    return items(JSON.parse(value))
  } catch {
    return []
  }
}
