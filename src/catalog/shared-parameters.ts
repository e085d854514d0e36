import Type, { type TSchema } from 'typebox'

/** Longest text, in characters, of a parameter for which its upstream states no bound. */
export const TEXT_LENGTH_MAX = 1_000

/** Requests to the upstream that one call may cost, if its parameters say how many. */
export const REQUESTS_MAX = 12

/** Parameters that several upstreams have: coordinates, and a country. */
export const latitude = Type.Number({ minimum: -90, maximum: 90, description: 'Degrees north' })
export const longitude = Type.Number({ minimum: -180, maximum: 180, description: 'Degrees east' })
export const countryCode = Type.String({
  minLength: 2,
  maxLength: 2,
  pattern: '^[A-Za-z]{2}$',
  description: 'ISO 3166-1 alpha-2 code of the country',
})

/**
 * Names by which the APIs know the same thing. An endpoint that declares one of them takes the
 * others as aliases, so that a caller who learned the names of one API can use them with the next.
 */
const SAME_THING = {
  latitude: ['latitude', 'lat'],
  longitude: ['longitude', 'lon', 'lng'],
  country: ['country', 'countryCode', 'country_code'],
  count: ['limit', 'max', 'amount', 'per_page'],
  query: ['q', 'query'],
  timezone: ['timezone', 'tzid'],
}

/** The names of a thing but for the name by which the endpoint declares it. */
export function otherNames(thing: keyof typeof SAME_THING, declared: string): string[] {
  return SAME_THING[thing].filter((name) => name !== declared)
}

/**
 * A parameter with a default. Callers may leave it out; an endpoint's functions always have it,
 * because admission fills in the default of the schema.
 */
export function defaulted<Schema extends TSchema>(schema: Schema): Schema {
  return Type.Optional(schema) as unknown as Schema
}
