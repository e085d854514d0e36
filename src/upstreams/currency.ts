import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { members, number, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter, upperCased } from '../catalog/parameter-values.ts'
import { param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/currency.json' with { type: 'json' }

/** The bank publishes once a working day, about 16:00 CET; a day-old rate is better than none. */
const cache = { seconds: lifetime.hour, staleWhileRevalidateSeconds: 600, staleIfErrorSeconds: lifetime.day }

const code = { minLength: 3, maxLength: 3, pattern: '^[A-Za-z]{3}$', normalize: upperCased }

const latest = record({
  base: field.text('base', 'ISO 4217 code of the base'),
  date: field.date('date', 'Day of the rates: the last working day of the bank'),
  rates: required.computed(
    Type.Record(Type.String(), Type.Number({ description: 'Units for one unit of the base' }), {
      description: 'Units of each currency for one unit of the base, which is not listed itself',
    }),
    ({ rates }) => numbersOf(members(rates)),
  ),
})

const pair = record({
  from: field.text('base', 'ISO 4217 code of the base'),
  to: required.text('to', 'ISO 4217 code of the target'),
  rate: required.notNull(
    field.number(({ rates, to }) => rateIn(members(rates)[String(to)]), 'Units of the target for one unit of the base'),
  ),
  date: field.date('date', 'Day of the rates: the last working day of the bank'),
})

export default upstream({
  displayName: 'Currency rates',
  category: 'finance',
  description: 'Daily euro reference rates of the European Central Bank, for all published currencies or for one pair.',
  tags: ['currency', 'exchange-rate', 'forex', 'euro', 'ecb'],
  keywords: words(
    'money convert conversion converter usd eur gbp jpy chf dollar pound yen franc foreign exchange rate fx',
  ),
  terms: {
    summary: 'Free, without a key or usage caps. Mid-market reference rates of the ECB, not dealing rates.',
    url: 'https://frankfurter.dev',
    attribution: 'ECB reference rates via Frankfurter',
  },
  baseUrl: 'https://api.frankfurter.dev',
  // No quota is published; this stays far from what an abuse filter would notice.
  caps: { concurrency: 4, rates: [{ max: 300, seconds: 60 }] },
  probe: { request: { path: path`/v1/latest`, query: { base: 'EUR', symbols: 'USD' } }, everySeconds: 60 },
  // This parameter would multiply the rates.
  reservedParameters: words('amount'),
  endpoints: {
    '/latest': endpoint({
      description: 'Latest reference rates for all published currencies, against the euro.',
      data: latest,
      cache,
      request: () => ({ path: path`/v1/latest` }),
      example: recordings['/latest'],
    }),

    '/pair': endpoint({
      description: 'Latest reference rate for one currency pair.',
      parameters: {
        from: param.text('Base currency, ISO 4217 code; it must differ from the target', code),
        to: param.text('Target currency, ISO 4217 code; about 30 are published', code),
      },
      data: pair,
      cache,
      complete: (parameters) => {
        if (parameters.to === parameters.from) throw new InvalidParameter('to', 'it is the same currency as from')
        return parameters
      },
      request: ({ from, to }) => ({ path: path`/v1/latest`, query: { base: from, symbols: to } }),
      // The body for an unknown route has a `status` besides the message.
      isNotFound: ({ body }) => members(body).message === 'not found' && !('status' in members(body)),
      // A rate with another base, or for another amount, does not answer the question.
      readFrom: ({ body, parameters: { from, to } }) => {
        const { base, amount } = members(body)
        const isOther = (text(base) ?? from) !== from || (number(amount) ?? 1) !== 1
        return isOther ? undefined : { ...members(body), to }
      },
      example: { ...recordings['/pair'], responseFor: recordedRate },
    }),
  },
})

/** Null for a value that is not a number above zero, because callers divide by rates. */
function rateIn(value: unknown): number | null {
  const rate = number(value)
  return rate !== null && rate > 0 ? rate : null
}

/** Undefined if nothing can be read: the bank publishes rates every day. */
function numbersOf(rates: Source): Record<string, number> | undefined {
  const known: [string, number][] = []
  for (const [code, value] of Object.entries(rates)) {
    const rate = rateIn(value)
    if (rate !== null) known.push([code, rate])
  }
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

/**
 * The bank publishes rates of the euro; all others follow from these. With as many digits as the
 * source gives.
 */
function recordedRate({ from, to }: { from: string; to: string }) {
  const { date, rates } = recordings['/latest'].response
  const known: Record<string, number> = { EUR: 1, ...rates }
  if (!Object.hasOwn(known, from) || !Object.hasOwn(known, to)) return undefined
  const rate = Number((Number(known[to]) / Number(known[from])).toPrecision(5))
  return { amount: 1, base: from, date, rates: { [to]: rate } }
}
