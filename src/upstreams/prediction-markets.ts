import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { items, members, numeric, objects } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { defaulted, otherNames } from '../catalog/shared-parameters.ts'
import { endpoint, path, type Upstream } from '../catalog/upstream.ts'

const limit = defaulted(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Items in the answer' }))

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
    tags: field.texts(({ tags }) => objects(tags).map(({ label }) => label), 'Names of its topics'),
    image_url: field.filledText('image', 'Picture'),
    markets: field.records('markets', 'Markets of the event', {
      ...identity,
      outcomes,
      volume: field.numeric(({ volumeNum, volume }) => numeric(volumeNum) ?? volume, 'US dollars traded in all'),
      ...standing,
    }),
  }),
})

const predictionMarkets: Upstream = {
  displayName: 'Prediction markets',
  category: 'finance',
  description: 'Open prediction markets and events with prices, volume and liquidity, from Polymarket.',
  tags: ['prediction', 'markets', 'probability', 'events', 'betting'],
  keywords: ['election', 'odds', 'bet', 'forecast', 'win', 'polls', 'gamble', 'chance', 'outcome', 'president'],
  tierRequired: 'developer',
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
  probe: {
    request: { path: path`/markets/keyset`, query: { limit: 1, closed: 'false' } },
    everySeconds: 60,
  },
  mayLack: [
    'best_bid',
    'best_ask',
    'last_trade_price',
    'start_date',
    'end_date',
    'open_interest',
    'comment_count',
    'liquidity',
    'volume_24h',
    'image_url',
    'tags',
  ],
  endpoints: {
    '/markets': endpoint({
      description: 'Open prediction markets with the highest 24-hour volume.',
      parameters: Type.Object({ limit }),
      aliases: { limit: otherNames('count', 'limit') },
      data: markets.schema,
      cache: { ...freshFor(30), staleIfErrorSeconds: lifetime.hour },
      request: ({ limit }) => ({ path: path`/markets/keyset`, query: openByVolume(limit) }),
      map: ({ body, parameters }) =>
        markets.read({ markets: listOf(body, 'markets')?.slice(0, parameters.limit) }) ?? invalid(),
      example: recordedMarkets(),
    }),
    '/events': endpoint({
      description: 'Open events (groups of markets) with the highest 24-hour volume.',
      parameters: Type.Object({ limit }),
      aliases: { limit: otherNames('count', 'limit') },
      data: events.schema,
      cache: { ...freshFor(60), staleIfErrorSeconds: lifetime.hour },
      request: ({ limit }) => ({ path: path`/events/keyset`, query: openByVolume(limit) }),
      map: ({ body, parameters }) =>
        events.read({ events: listOf(body, 'events')?.slice(0, parameters.limit) }) ?? invalid(),
      example: recordedEvents(),
    }),
  },
}

export default predictionMarkets

/** Without `closed` the answer starts with settled items, or has nothing else. */
function openByVolume(limit: number) {
  return { limit, closed: 'false', order: 'volume24hr', ascending: 'false' }
}

/** The objects of an answer, whether wrapped (keyset pages) or bare (the deprecated lists). */
function listOf(body: unknown, key: string): Source[] | undefined {
  const list = Array.isArray(body) ? body : members(body)[key]
  return Array.isArray(list) ? objects(list) : undefined
}

function outcomesOf(market: Source): Source[] {
  const prices = encodedList(market.outcomePrices)
  return encodedList(market.outcomes).map((name, index) => ({ name, price: prices[index] }))
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

function recordedMarkets() {
  return {
    parameters: { limit: 1 },
    // biome-ignore format: as recorded
    response: {
      markets: [{
        id: '559652', question: 'Will Gavin Newsom win the 2028 Democratic presidential nomination?',
        conditionId: '0x0f49db97f71c68b1e42a6d16e3de93d85dbf7d4148e3f018eb79e88554be9f75',
        slug: 'will-gavin-newsom-win-the-2028-democratic-presidential-nomination-568', resolutionSource: '', endDate: '2028-11-07T00:00:00Z',
        liquidity: '230438.22824', startDate: '2025-07-11T18:35:56.805Z',
        image: 'https://polymarket-upload.s3.us-east-2.amazonaws.com/will-gavin-newsom-win-the-2028-us-presidential-election-x9lPL7_gXn--.png',
        description: 'This market will resolve to “Yes” if the named individual wins and accepts the 2028 nomination of the Democratic Party for U.S. president. O [cut]',
        outcomes: '["Yes", "No"]', outcomePrices: '["0.2325", "0.7675"]', volume: '25814545.294374414', active: true, closed: false,
        createdAt: '2025-07-03T20:36:58.88434Z', updatedAt: '2026-06-14T11:04:26.005876Z', new: false, featured: false, archived: false, restricted: true,
        groupItemTitle: 'Gavin Newsom', enableOrderBook: true, orderPriceMinTickSize: 0.001, orderMinSize: 5, volumeNum: 25814545.294374414,
        liquidityNum: 230438.22824, endDateIso: '2028-11-07', startDateIso: '2025-07-11', volume24hr: 9066.547418000006, volume1wk: 80473.10950700007,
        clobTokenIds: '["54533043819946592547517511176940999955633860128497669742211153063842200957669", "87854174148074652060467921081181402357467303721471806610111179101805869578687"]',
        acceptingOrders: true, negRisk: true,
        events: [{
          id: '30829', ticker: 'democratic-presidential-nominee-2028', slug: 'democratic-presidential-nominee-2028',
          title: 'Democratic Presidential Nominee 2028', active: true, closed: false, liquidity: 64486079.62132, volume: 1196404731.1335425,
        }],
        spread: 0.001, oneWeekPriceChange: -0.019, oneMonthPriceChange: -0.008, lastTradePrice: 0.232, bestBid: 0.232, bestAsk: 0.233,
        umaResolutionStatuses: '[]', feesEnabled: true, feeType: 'politics_fees',
      }],
      next_cursor: '<opaque cursor string>',
    },
    // biome-ignore format: as recorded
    data: {
      markets: [{
        id: '559652', question: 'Will Gavin Newsom win the 2028 Democratic presidential nomination?',
        slug: 'will-gavin-newsom-win-the-2028-democratic-presidential-nomination-568',
        condition_id: '0x0f49db97f71c68b1e42a6d16e3de93d85dbf7d4148e3f018eb79e88554be9f75',
        outcomes: [{ name: 'Yes', price: 0.2325 }, { name: 'No', price: 0.7675 }],
        volume: 25814545.294374414, volume_24h: 9066.547418000006, liquidity: 230438.22824, best_bid: 0.232, best_ask: 0.233, last_trade_price: 0.232,
        start_date: '2025-07-11T18:35:56.805Z', end_date: '2028-11-07T00:00:00Z', active: true, closed: false,
        image_url: 'https://polymarket-upload.s3.us-east-2.amazonaws.com/will-gavin-newsom-win-the-2028-us-presidential-election-x9lPL7_gXn--.png',
        event: { id: '30829', slug: 'democratic-presidential-nominee-2028', title: 'Democratic Presidential Nominee 2028' },
      }],
    },
  }
}

function recordedEvents() {
  return {
    parameters: { limit: 1 },
    // biome-ignore format: as recorded
    response: {
      events: [{
        id: '30829', ticker: 'democratic-presidential-nominee-2028', slug: 'democratic-presidential-nominee-2028',
        title: 'Democratic Presidential Nominee 2028',
        description: 'This market will resolve to “Yes” if the named individual wins and accepts the 2028 nomination of the Democratic Party for U.S. president. O [cut]',
        resolutionSource: '', startDate: '2025-07-11T18:41:17.827458Z', creationDate: '2025-07-11T18:41:17.827389Z', endDate: '2028-11-07T00:00:00Z',
        image: 'https://polymarket-upload.s3.us-east-2.amazonaws.com/democrats+2028+donkey.png',
        icon: 'https://polymarket-upload.s3.us-east-2.amazonaws.com/democrats+2028+donkey.png',
        active: true, closed: false, archived: false, new: false, featured: false, restricted: true, liquidity: 43042905.16152, volume: 799823812.487094,
        openInterest: 0, createdAt: '2025-07-03T20:36:57.824243Z', updatedAt: '2026-03-11T15:13:38.097738Z', volume24hr: 5669354.219446001,
        volume1wk: 40219363.276527, enableOrderBook: true, commentCount: 575,
        markets: [
          {
            id: '559657', question: 'Will Stephen A. Smith win the 2028 Democratic presidential nomination?',
            slug: 'will-stephen-a-smith-win-the-2028-democratic-presidential-nomination-914', endDate: '2028-11-07T00:00:00Z', liquidity: '400500.66675',
            outcomes: '["Yes", "No"]', outcomePrices: '["0.0105", "0.9895"]', volume: '12232699.615479222', active: true, closed: false,
            volumeNum: 12232699.615479222, liquidityNum: 400500.66675, volume24hr: 129642.785175, lastTradePrice: 0.01, bestBid: 0.01, bestAsk: 0.011,
          },
          {
            id: '559659', question: 'Will Gretchen Whitmer win the 2028 Democratic presidential nomination?',
            slug: 'will-gretchen-whitmer-win-the-2028-democratic-presidential-nomination-676', endDate: '2028-11-07T00:00:00Z', liquidity: '573479.49303',
            outcomes: '["Yes", "No"]', outcomePrices: '["0.0145", "0.9855"]', volume: '6313171.174692103', active: true, closed: false,
            volumeNum: 6313171.174692103, liquidityNum: 573479.49303, volume24hr: 14323.58006, lastTradePrice: 0.013, bestBid: 0.014, bestAsk: 0.015,
          },
        ],
        tags: [
          { id: '101206', label: 'World Elections', slug: 'world-elections', forceShow: false },
          { id: '1597', label: 'Global Elections', slug: 'global-elections', forceShow: true },
          { id: '144', label: 'Elections', slug: 'elections', forceShow: false },
        ],
        countryName: 'U.S.', electionType: 'Democratic Nomination',
      }],
      next_cursor: '<opaque cursor string>',
    },
    // biome-ignore format: as recorded
    data: {
      events: [{
        id: '30829', title: 'Democratic Presidential Nominee 2028', slug: 'democratic-presidential-nominee-2028',
        description: 'This market will resolve to “Yes” if the named individual wins and accepts the 2028 nomination of the Democratic Party for U.S. president. O [cut]',
        start_date: '2025-07-11T18:41:17.827458Z', end_date: '2028-11-07T00:00:00Z', active: true, closed: false, volume: 799823812.487094,
        volume_24h: 5669354.219446001, liquidity: 43042905.16152, open_interest: 0, comment_count: 575,
        tags: ['World Elections', 'Global Elections', 'Elections'],
        image_url: 'https://polymarket-upload.s3.us-east-2.amazonaws.com/democrats+2028+donkey.png',
        markets: [
          {
            id: '559657', question: 'Will Stephen A. Smith win the 2028 Democratic presidential nomination?',
            slug: 'will-stephen-a-smith-win-the-2028-democratic-presidential-nomination-914',
            outcomes: [{ name: 'Yes', price: 0.0105 }, { name: 'No', price: 0.9895 }], volume: 12232699.615479222, active: true, closed: false,
          },
          {
            id: '559659', question: 'Will Gretchen Whitmer win the 2028 Democratic presidential nomination?',
            slug: 'will-gretchen-whitmer-win-the-2028-democratic-presidential-nomination-676',
            outcomes: [{ name: 'Yes', price: 0.0145 }, { name: 'No', price: 0.9855 }], volume: 6313171.174692103, active: true, closed: false,
          },
        ],
      }],
    },
  }
}
