/** Compares the form of a live call's data with the recorded example of its endpoint. */
import type { Endpoint } from '../../src/catalog/endpoint.ts'

interface Schema {
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  items?: Schema
  type?: string
}

/**
 * Names the fields of the specification that have a value in the recording and no value now, and
 * each declared member that is missing or has another type. Values do not count, because they
 * differ from day to day, nor do keys that are data.
 */
export function driftOf({ data: schema, example }: Endpoint, specFields: string[], live: unknown): string[] {
  const found = compare(schema as Schema, example.data, live, 'data')
  const recorded = example.data as Record<string, unknown>
  const current = (live ?? {}) as Record<string, unknown>
  const emptied = specFields.flatMap((field) => {
    if (isFilled(recorded[field]) && current[field] === null) return [`${field} null`]
    return isFilled(recorded[field]) && isEmptyList(current[field]) ? [`${field} empty`] : []
  })
  return [...emptied, ...found.map((difference) => difference.replace(/^data\./, ''))]
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0
const isFilled = (value: unknown): boolean => value !== null && value !== undefined && !isEmptyList(value)

function compare(schema: Schema, recorded: unknown, live: unknown, at: string): string[] {
  if (live === undefined) return [`${at} missing`]
  if (live === null || recorded === null || recorded === undefined) return []
  if (kindOf(live) !== kindOf(recorded)) return [`${at} ${kindOf(recorded)} → ${kindOf(live)}`]
  const { properties, items } = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema
  if (Array.isArray(live) && Array.isArray(recorded)) {
    return live.length > 0 && items ? compare(items, recorded[0], live[0], `${at}[0]`) : []
  }
  return Object.entries(properties ?? {}).flatMap(([name, member]) =>
    compare(member, Reflect.get(recorded, name), Reflect.get(live, name), `${at}.${name}`),
  )
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'list' : typeof value
}
