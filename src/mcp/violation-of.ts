import type { Validator } from 'typebox/schema'
import type { Violation } from '../http/request/violation-words.ts'

/**
 * The first violation in the arguments of a tool, in the form in which Ajv reports violations for
 * routes.
 */
export function violationOf(validator: Pick<Validator, 'Errors' | 'Schema'>, input: unknown): Violation {
  const [, errors] = validator.Errors(input)
  // An unknown member is reported twice. The first report lacks the schema.
  const error = errors.find(({ keyword }) => keyword !== 'boolean')
  if (!error) return {}
  const params: Record<string, unknown> = error.params
  const [additionalProperty] = [params.additionalProperties].flat()
  const [missingProperty] = [params.requiredProperties].flat()
  let data: unknown = input
  let parentSchema: unknown = validator.Schema()
  for (const step of error.instancePath.split('/').slice(1)) {
    data = memberOf(data, step)
    parentSchema = memberOf(memberOf(parentSchema, 'properties'), step) ?? memberOf(parentSchema, 'items')
  }
  const { keyword, instancePath, message } = error
  const about = { data, parentSchema: Object(parentSchema) }
  return { keyword, instancePath, message, params: { ...params, additionalProperty, missingProperty }, ...about }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
