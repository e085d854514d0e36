import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { GatewayError } from '../errors.ts'
import { sentence, violationPlace, violationWords } from '../http/request/violation-words.ts'
import { violationOf } from './violation-of.ts'

const validators = new WeakMap<TSchema, Validator>()

/**
 * Arguments that a schema takes.
 *
 * @throws GatewayError INVALID_PARAMETER with a sentence about the first that it does not take
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

/** The refusal of a tool's arguments. It becomes a result, because models read results alone. */
export function invalidArguments(words: string): GatewayError {
  return new GatewayError('INVALID_PARAMETER', {
    message: words,
    hint: 'Correct the arguments and call the tool again',
  })
}

/** A tool would ignore a member that it does not know, and with it what the model meant. */
export const closedObject = <T extends Type.TProperties>(members: T) =>
  Type.Object(members, { additionalProperties: false })
