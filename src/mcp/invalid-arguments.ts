import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/schema'
import { sentence, violationPlace, violationWords } from '../http/request/violation-words.ts'
import { violationOf } from './violation-of.ts'

const validators = new WeakMap<TSchema, Validator>()

/**
 * Arguments that a schema takes.
 *
 * @throws ProtocolError -32602 with a sentence about the first that it does not take
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

export function invalidArguments(words: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, words)
}

/** Of a member that it does not know, a tool would drop what the model meant by it. */
export const closedObject = <T extends Type.TProperties>(members: T) =>
  Type.Object(members, { additionalProperties: false })
