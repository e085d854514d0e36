/**
 * Declares the parameters of an endpoint: what callers may send, what it means, and how a value is
 * normalized before it is used.
 */
import Type, {
  type Static,
  type TEnum,
  type TInteger,
  type TNumber,
  type TObject,
  type TOptional,
  type TSchema,
  type TString,
} from 'typebox'
import type { CallContext } from './endpoint.ts'
import { knownZone, upperCased } from './parameter-values.ts'

/** Longest text of a parameter if its upstream states no limit, characters. */
export const TEXT_LENGTH_MAX = 1_000

/** Most requests to the upstream for a single call, if the number depends on its parameters. */
export const REQUESTS_MAX = 12

/**
 * Brings a value that fits its schema into the form in which it is used, for example without blanks
 * around it, in lower case, or without superfluous zeros. Values that mean the same then share
 * stored answers.
 *
 * @throws InvalidParameter if the value breaks a rule that a schema cannot express
 */
export type Normalize<Value> = (name: string, value: Value, context: CallContext) => Value

/** One parameter. `normalize` is not called for a parameter that is absent. */
export interface Parameter<Schema extends TSchema = TSchema> {
  schema: Schema
  normalize?: Normalize<Static<Schema>> | undefined
  aliases?: readonly string[] | undefined
}

/** Parameters by name, in the order of the documents. */
export type Parameters = Record<string, Omit<Parameter, 'normalize'> & { normalize?: NormalizeOwn | undefined }>
/** A function that receives only values of its own parameter. */
type NormalizeOwn = (name: string, value: never, context: CallContext) => unknown

/** The schema of an object that holds the parameters. */
export type ObjectOfParameters<Of extends Parameters> = TObject<{ [Name in keyof Of]: Of[Name]['schema'] }>

interface Options<Value> {
  /** If set, callers may leave the parameter out, and the endpoint's functions get this value. */
  default?: Value
  normalize?: Normalize<Value>
  /**
   * Other names that callers may use. If the parameter's own name is among them, it is ignored.
   * `namesOf` has the names that other APIs of the catalog use for the same thing.
   */
  aliases?: readonly string[]
}

interface Bounds {
  minimum?: number
  maximum?: number
}

interface TextBounds {
  /** Default: 1. */
  minLength?: number
  /** Default: `TEXT_LENGTH_MAX`. */
  maxLength?: number
  pattern?: string
}

/**
 * Names by which different APIs know the same thing. A parameter with one of the names accepts the
 * others as aliases, so that callers can use the names of one API with another API.
 */
export const namesOf = {
  latitude: ['latitude', 'lat'],
  longitude: ['longitude', 'lon', 'lng'],
  country: ['country', 'countryCode', 'country_code'],
  count: ['limit', 'max', 'amount', 'per_page'],
  query: ['q', 'query'],
  timezone: ['timezone', 'tzid'],
}

/** Parameters that callers must send unless they have a default. */
export const param = {
  text: (description: string, options: TextBounds & Options<string> = {}): Parameter<TString> =>
    parameter(options, (schema) => Type.String({ minLength: 1, maxLength: TEXT_LENGTH_MAX, ...schema, description })),

  number: (description: string, options: Bounds & Options<number> = {}): Parameter<TNumber> =>
    parameter(options, (schema) => Type.Number({ ...schema, description })),

  integer: (description: string, options: Bounds & Options<number> = {}): Parameter<TInteger> =>
    parameter(options, (schema) => Type.Integer({ ...schema, description })),

  /** A parameter with a fixed list of values. */
  oneOf: <Values extends string[]>(
    values: readonly [...Values],
    description: string,
    options: Options<Values[number]> = {},
  ): Parameter<TEnum<Values>> => parameter(options, (schema) => Type.Enum(values, { ...schema, description })),
}

/** Makes a parameter optional for callers. */
export function optional<Schema extends TSchema>(given: Parameter<Schema>): Parameter<TOptional<Schema>> {
  return { ...given, schema: Type.Optional(given.schema) as unknown as TOptional<Schema> }
}

/** If a parameter has a default, it is optional for callers and always present for the endpoint. */
function parameter<Schema extends TSchema>(
  { normalize, aliases, ...bounds }: Options<Static<Schema>>,
  schemaOf: (bounds: object) => Schema,
): Parameter<Schema> {
  const schema = schemaOf(bounds)
  const written = bounds.default === undefined ? schema : (Type.Optional(schema) as unknown as Schema)
  return { schema: written, normalize, aliases }
}

/** Parameters that several upstreams have: coordinates, a country and a time zone. */
export const latitude = param.number('Degrees north', { minimum: -90, maximum: 90, aliases: namesOf.latitude })
export const longitude = param.number('Degrees east', { minimum: -180, maximum: 180, aliases: namesOf.longitude })
export const countryCode = param.text('ISO 3166-1 alpha-2 code of the country', {
  minLength: 2,
  maxLength: 2,
  pattern: '^[A-Za-z]{2}$',
  normalize: upperCased,
  aliases: namesOf.country,
})
export const timeZone = (description: string): Parameter<TString> =>
  param.text(description, {
    pattern: '^[A-Za-z][A-Za-z0-9_+/-]*$',
    normalize: knownZone,
    aliases: namesOf.timezone,
  })
