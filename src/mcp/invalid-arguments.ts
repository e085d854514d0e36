import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { GatewayError } from '../errors.ts'
import { sentence, violationPlace, violationWords } from '../http/request/violation-words.ts'
import { violationOf } from './violation-of.ts'

const validators = new WeakMap<TSchema, Validator>()

/**
 * Checks arguments against a schema.
 *
 * @throws GatewayError INVALID_PARAMETER with a sentence about the first argument that does not fit
 */
export function checkArguments<Schema extends TSchema>(schema: Schema, given: unknown): Static<Schema> {
  const validator = validators.get(schema) ?? Compile(schema)
  validators.set(schema, validator)
  if (validator.Check(given)) return given as Static<Schema>
  const violation = violationOf(validator, given)
  const name = violationPlace(violation)
  const subject = name === undefined ? 'The arguments are invalid: it' : `Argument ${name}`
  throw invalidArguments(sentence(`${subject} ${violationWords(violation)}`))
}

/**
 * The refusal of a tool's arguments. It is returned as a result, because models only read results.
 */
export function invalidArguments(words: string): GatewayError {
  return new GatewayError('INVALID_PARAMETER', {
    message: words,
    hint: 'Correct the arguments and call the tool again',
  })
}

/**
 * An object schema that refuses unknown members. Otherwise a tool would ignore them, and what the
 * model meant would be lost.
 */
export const closedObject = <T extends Type.TProperties>(members: T) =>
  Type.Object(members, { additionalProperties: false })
