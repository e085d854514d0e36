import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { isObject, members, number } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { endpoint, InvalidParameter, path, type Upstream } from '../catalog/upstream.ts'

/** The bank publishes once a working day, about 16:00 CET; a day-old rate is better than none. */
const cache = { seconds: lifetime.hour, staleWhileRevalidateSeconds: 600, staleIfErrorSeconds: lifetime.day }

const latest = record({
  base: field.text('base', 'ISO 4217 code of the base'),
  date: field.text('date', 'Day of the rates: the last working day of the bank'),
  rates: required.computed(
    Type.Record(Type.String(), Type.Number({ description: 'Units for one unit of the base' }), {
      description: 'Units of each currency for one unit of the base, which is not listed itself',
    }),
    ({ rates }) => (isObject(rates) ? numbersOf(rates) : undefined),
  ),
})

const pair = record({
  from: field.text('base', 'ISO 4217 code of the base'),
  to: required.text('to', 'ISO 4217 code of the target'),
  rate: required.notNull(
    field.number(({ rates, to }) => members(rates)[String(to)], 'Units of the target for one unit of the base'),
  ),
  date: field.text('date', 'Day of the rates: the last working day of the bank'),
})

const currency: Upstream = {
  displayName: 'Currency rates',
  category: 'finance',
  description: 'Daily euro reference rates of the European Central Bank, for all published currencies or for one pair.',
  tags: ['currency', 'exchange-rate', 'forex', 'euro', 'ecb'],
  keywords: [
    'money',
    'convert',
    'conversion',
    'converter',
    'usd',
    'eur',
    'gbp',
    'jpy',
    'chf',
    'dollar',
    'pound',
    'yen',
    'franc',
    'foreign',
    'exchange',
    'rate',
    'fx',
  ],
  tierRequired: 'developer',
  terms: {
    summary: 'Free, without a key or usage caps. Mid-market reference rates of the ECB, not dealing rates.',
    url: 'https://frankfurter.dev',
    attribution: 'ECB reference rates via Frankfurter',
  },
  baseUrl: 'https://api.frankfurter.dev',
  // No quota is published; this stays far from what an abuse filter would notice.
  caps: { concurrency: 4, rates: [{ max: 300, seconds: 60 }] },
  probe: {
    request: { path: path`/v1/latest`, query: { base: 'EUR', symbols: 'USD' } },
    everySeconds: 60,
  },
  // It would multiply the rates.
  reservedParameters: ['amount'],
  endpoints: {
    '/latest': endpoint({
      description: 'Latest reference rates for all published currencies, against the euro.',
      parameters: Type.Object({}),
      data: latest.schema,
      cache,
      request: () => ({ path: path`/v1/latest` }),
      map: ({ body }) => latest.read(body) ?? invalid(),
      example: recordedLatest(),
    }),

    '/pair': endpoint({
      description: 'Latest reference rate for one currency pair.',
      parameters: Type.Object({
        from: Type.String({
          minLength: 3,
          maxLength: 3,
          pattern: '^[A-Za-z]{3}$',
          description: 'Base currency, ISO 4217 code, another one than the target',
        }),
        to: Type.String({
          minLength: 3,
          maxLength: 3,
          pattern: '^[A-Za-z]{3}$',
          description: 'Target currency, ISO 4217 code; about 30 are published',
        }),
      }),
      data: pair.schema,
      cache,
      complete: (parameters) => {
        const to = parameters.to.toUpperCase()
        const from = parameters.from.toUpperCase()
        if (to === from) throw new InvalidParameter('to', 'it is the same currency as from')
        return { ...parameters, to, from }
      },
      request: ({ from, to }) => ({
        path: path`/v1/latest`,
        query: { base: from, symbols: to },
      }),
      // The body for an unknown route has a `status` beside the message.
      isNotFound: ({ body }) => members(body).message === 'not found' && !('status' in members(body)),
      map: ({ body, parameters }) => pair.read({ ...members(body), to: parameters.to }) ?? invalid(),
      example: recordedPair(),
    }),
  },
}

export default currency

function numbersOf(rates: Source): Record<string, number> {
  const known: [string, number][] = []
  for (const [code, value] of Object.entries(rates)) {
    const rate = number(value)
    if (rate !== null) known.push([code, rate])
  }
  return Object.fromEntries(known)
}

function recordedLatest() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: {
      amount: 1.0, base: 'EUR', date: '2025-04-04',
      rates: {
        AUD: 1.8098, BGN: 1.9558, BRL: 6.3407, CAD: 1.5696, CHF: 0.9407, CNY: 8.0518, CZK: 25.142, DKK: 7.4618, GBP: 0.84985, HKD: 8.5933, HUF: 405.7,
        IDR: 18751, ILS: 4.1244, INR: 94.43, ISK: 144.7, JPY: 160.56, KRW: 1601.11, MXN: 22.539, MYR: 4.906, NOK: 11.6815, NZD: 1.9613, PHP: 63.294,
        PLN: 4.2625, RON: 4.9773, SEK: 10.974, SGD: 1.4804, THB: 37.793, TRY: 42.03, USD: 1.1057, ZAR: 21.079,
      },
    },
    // biome-ignore format: as recorded
    data: {
      base: 'EUR', date: '2025-04-04',
      rates: {
        AUD: 1.8098, BGN: 1.9558, BRL: 6.3407, CAD: 1.5696, CHF: 0.9407, CNY: 8.0518, CZK: 25.142, DKK: 7.4618, GBP: 0.84985, HKD: 8.5933, HUF: 405.7,
        IDR: 18751, ILS: 4.1244, INR: 94.43, ISK: 144.7, JPY: 160.56, KRW: 1601.11, MXN: 22.539, MYR: 4.906, NOK: 11.6815, NZD: 1.9613, PHP: 63.294,
        PLN: 4.2625, RON: 4.9773, SEK: 10.974, SGD: 1.4804, THB: 37.793, TRY: 42.03, USD: 1.1057, ZAR: 21.079,
      },
    },
  }
}

/**
 * The bank publishes rates of the euro; all others follow from these. With as many digits as the
 * source gives.
 */
function recordedRate({ from, to }: { from: string; to: string }) {
  const { date, rates } = recordedLatest().response
  const known: Record<string, number> = { EUR: 1, ...rates }
  if (!Object.hasOwn(known, from) || !Object.hasOwn(known, to)) return undefined
  const rate = Number((Number(known[to]) / Number(known[from])).toPrecision(5))
  return { amount: 1, base: from, date, rates: { [to]: rate } }
}

function recordedPair() {
  return {
    responseFor: recordedRate,
    parameters: { from: 'USD', to: 'INR' },
    // biome-ignore format: as recorded
    response: { amount: 1.0, base: 'USD', date: '2026-09-11', rates: { INR: 95.56 } },
    // biome-ignore format: as recorded
    data: { from: 'USD', to: 'INR', rate: 95.56, date: '2026-09-11' },
  }
}
