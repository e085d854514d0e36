import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, integer, isObject, items, members, nullable, number } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { param } from '../catalog/parameters.ts'
import { failed, notFound, rejected } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/market-quotes.json' with { type: 'json' }

/**
 * Seconds an answer is fresh: who asks for years does not follow the minutes. Longer ranges take an
 * hour.
 */
const secondsByRange = new Map([
  ['1d', 30],
  ['5d', 300],
  ['1mo', 300],
])

const quote = record({
  symbol: field.text('meta.symbol', 'Ticker as the source writes it'),
  name: field.text(({ meta }) => longestName(members(meta)), 'Name of the company, fund, index or pair'),
  price: field.number('meta.regularMarketPrice', 'Latest price, in `currency`'),
  volume: field.number('meta.regularMarketVolume', 'Units traded'),
  day_low: field.number('meta.regularMarketDayLow', 'Lowest price of the day'),
  day_high: field.number('meta.regularMarketDayHigh', 'Highest price of the day'),
  previous_close: field.number(previousClose, 'Price at the end of the trading day before that of `price`'),
  // Too large a difference is no number: such an answer is invalid, not one without a change.
  change: field.computed(nullable(Type.Number({ description: '`price` minus `previous_close`' })), change),
  change_percent: field.computed(
    nullable(Type.Number({ description: '`change` in percent of `previous_close`' })),
    changePercent,
  ),
  currency: field.text('meta.currency', 'ISO 4217 code, or a subunit: GBp pence, ZAc cents, ILA agorot'),
  exchange: field.text('meta.fullExchangeName', 'Name of the exchange'),
  instrument_type: field.text('meta.instrumentType', 'EQUITY, ETF, INDEX, CURRENCY and others'),
  timezone: field.text('meta.exchangeTimezoneName', 'IANA name of the zone of the exchange'),
  market_time: field.text(({ meta }) => isoTime(members(meta).regularMarketTime), 'Time of the price, ISO 8601, UTC'),
  fifty_two_week_high: field.number('meta.fiftyTwoWeekHigh', 'Highest price of 52 weeks'),
  fifty_two_week_low: field.number('meta.fiftyTwoWeekLow', 'Lowest price of 52 weeks'),
  range: required.text('range', 'Span of the history'),
  interval: required.text('interval', 'Length of a bar'),
  history: field.records(barsOf, 'Bars of the range, oldest first', {
    time: required.text(({ timestamp }) => isoTime(timestamp), 'ISO 8601, UTC'),
    open: field.number('open', 'Price at the start of the bar, in `currency`'),
    high: field.number('high', 'Highest price in the bar'),
    low: field.number('low', 'Lowest price in the bar'),
    close: required.number('close', 'Price at the end of the bar'),
    volume: field.number('volume', 'Units traded'),
  }),
})

export default upstream({
  displayName: 'Market quotes',
  category: 'finance',
  description:
    'Latest price, day figures and price history of a stock, fund, index, currency or future, from Yahoo Finance.',
  tags: ['stocks', 'quotes', 'market', 'prices', 'finance'],
  keywords: words('share stock exchange nasdaq nyse dow s&p s&p500 ticker company etf index invest gold oil'),
  terms: {
    nonCommercial: true,
    summary: 'An undocumented endpoint without a service agreement: best effort, personal use, no redistribution.',
    attribution: 'Quotes by Yahoo Finance',
  },
  baseUrl: 'https://query1.finance.yahoo.com',
  // Anything but a current browser is answered 429, whatever its rate.
  headers: {
    'user-agent':
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    accept: 'application/json',
  },
  // Nothing is published; bursts get addresses blocked.
  caps: {
    concurrency: 2,
    rates: [
      { max: 2, seconds: 1 },
      { max: 60, seconds: 60 },
    ],
  },
  probe: { request: { path: path`/v8/finance/chart/AAPL`, query: { range: '1d', interval: '1d' } }, everySeconds: 300 },
  // A period would win over the range.
  reservedParameters: words('period1 period2 crumb formatted'),
  mayLack: words('name volume fifty_two_week_high fifty_two_week_low previous_close change change_percent history'),
  endpoints: {
    '/quote': endpoint({
      description: 'Latest price and day figures of one ticker, with its price history over a range.',
      parameters: {
        symbol: param.text('Ticker: AAPL, 7203.T, ^GSPC, EURUSD=X, BTC-USD', { normalize: ticker }),
        range: param.oneOf(['1d', '5d', '1mo', '3mo', '6mo', '1y', '2y', '5y'], 'Span of the history, up to now', {
          default: '1d',
        }),
        interval: param.oneOf(
          ['1m', '5m', '15m', '1h', '1d', '1wk', '1mo'],
          'Length of a bar; 5m and 15m reach back 60 days, 1m about 8, 1h 730',
          { default: '1d' },
        ),
      },
      data: quote,
      cache: {
        seconds: ({ range }) => secondsByRange.get(range) ?? lifetime.hour,
        staleWhileRevalidateSeconds: 60,
        staleIfErrorSeconds: lifetime.day,
        notFoundSeconds: lifetime.hour,
      },
      request: ({ symbol, range, interval }) => ({
        path: path`/v8/finance/chart/${symbol}`,
        query: { range, interval },
      }),
      isNotFound: ({ body }) => chartError(body)?.code === 'Not Found',
      classify: ({ status, body }) =>
        status === 422 && chartError(body)
          ? rejected('This interval is not available over this range: take a longer one.')
          : undefined,
      readFrom: ({ body, parameters: { range, interval } }) => {
        const error = chartError(body)
        if (error) return error.code === 'Not Found' ? notFound() : failed()
        const result = items(members(members(body).chart).result)[0]
        if (!isObject(result) || !isObject(result.meta)) return undefined
        if (isStub(result, result.meta)) return notFound()
        return { ...result, range, interval }
      },
      example: recordings['/quote'],
    }),
  },
})

function chartError(body: unknown): Source | undefined {
  const { error } = members(members(body).chart)
  return isObject(error) ? error : undefined
}

/** A half-known symbol is answered with a price of 0 or null, no currency and no bars. */
function isStub(result: Source, { regularMarketPrice, currency }: Source): boolean {
  const hasPrice = (number(regularMarketPrice) ?? 0) !== 0
  return !hasPrice && filledText(currency) === null && !barsOf(result).some(({ close }) => number(close) !== null)
}

function ticker(name: string, given: string): string {
  const symbol = given.trim().toUpperCase()
  if (!/^\^?[A-Z0-9][A-Z0-9.&=_-]*$/.test(symbol)) throw new InvalidParameter(name, 'it is not a ticker')
  return symbol
}

function longestName({ longName, shortName, symbol }: Source): unknown {
  return filledText(longName) ?? filledText(shortName) ?? symbol
}

/**
 * The close that the change of the regular price counts from. The answer has it under several
 * names, each of which may be about another session: `chartPreviousClose` is the close before the
 * range, and `fulldayChange` belongs to `fulldayPrice`, which has the trading before and after
 * hours. A candidate counts only if the change in percent, which is always about the regular price,
 * agrees with it.
 */
function previousClose({ meta, range }: Source): number | null {
  const named = members(meta)
  const price = number(named.regularMarketPrice)
  const percent = number(named.regularMarketChangePercent)
  const candidates = [
    number(named.previousClose),
    range === '1d' ? number(named.chartPreviousClose) : null,
    fulldayClose(named),
  ].filter((close) => close !== null)
  if (price === null || percent === null) return candidates[0] ?? null
  const agreeing = candidates.find((close) => agreesWithPrices(percent, { price, close, priceHint: named.priceHint }))
  return agreeing ?? closeByPercent(price, percent, named.priceHint)
}

/** Without a change in percent to check it by, only while both prices are one. */
function fulldayClose({ regularMarketPrice, regularMarketChangePercent, fulldayPrice, fulldayChange }: Source) {
  const price = number(fulldayPrice)
  const change = number(fulldayChange)
  if (price === null || change === null) return null
  if (number(regularMarketChangePercent) === null && price !== regularMarketPrice) return null
  return withoutNoise(price - change, price)
}

function closeByPercent(price: number, percent: number, priceHint: unknown): number | null {
  const exact = number(price / (1 + percent / 100))
  // Only a price below zero, as oil once had, falls by more than all of it.
  if (exact === null || exact === 0 || (percent < -100 && exact < 0)) return null
  const close = Number(exact.toFixed(decimalsOf(priceHint)))
  return agreesWithPrices(percent, { price, close, priceHint }) ? close : Number(exact.toPrecision(6))
}

/**
 * Whether price and close have this change in percent, as far as the rounding of the three allows.
 */
function agreesWithPrices(
  percent: number,
  { price, close, priceHint }: { price: number; close: number; priceHint: unknown },
): boolean {
  if (close === 0) return false
  const computed = ((price - close) / close) * 100
  const roundingPercent = 0.006 + Math.abs((10 ** -decimalsOf(priceHint) / close) * 100)
  return Math.abs(computed - percent) <= roundingPercent
}

/** Decimals of prices of an instrument. */
function decimalsOf(priceHint: unknown): number {
  const decimals = integer(priceHint)
  return decimals === null || decimals < 0 || decimals > 12 ? 2 : decimals
}

function change(source: Source): number | null {
  const price = number(members(source.meta).regularMarketPrice)
  const close = previousClose(source)
  return price === null || close === null ? null : withoutNoise(price - close, price)
}

/** The upstream's own figure if it has the sign of the change, which its rounding can hide. */
function changePercent(source: Source): number | null {
  const close = previousClose(source)
  const difference = change(source)
  if (close === null || close === 0 || difference === null) return null
  const percent = number(members(source.meta).regularMarketChangePercent)
  const hasSign = percent !== null && (percent === 0 || Math.sign(percent) === Math.sign(difference / close))
  return hasSign ? percent : Number(((difference / close) * 100).toFixed(4))
}

/**
 * A difference without the noise of binary fractions: to four decimals, more for prices below 1.
 */
function withoutNoise(difference: number, price: number): number {
  return Number(Math.abs(price) < 1 ? difference.toPrecision(6) : difference.toFixed(4))
}

/** The bars, from parallel arrays with null if nothing was traded. */
function barsOf({ timestamp, indicators }: Source): Source[] {
  const columns = members(items(members(indicators).quote)[0])
  const [open, high, low, close, volume] = ['open', 'high', 'low', 'close', 'volume'].map((name) =>
    items(columns[name]),
  )
  const bars = items(timestamp).map((time, index) => ({
    timestamp: integer(time),
    open: open?.[index],
    high: high?.[index],
    low: low?.[index],
    close: close?.[index],
    volume: volume?.[index],
  }))
  return bars.toSorted((one, other) => (one.timestamp ?? 0) - (other.timestamp ?? 0))
}

/** ISO 8601 in whole seconds; null outside the years that it writes with four digits. */
function isoTime(epochSeconds: unknown): string | null {
  const seconds = integer(epochSeconds)
  if (seconds === null || Math.abs(seconds) > 60_000_000_000) return null
  return new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z')
}
