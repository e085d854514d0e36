import { isObject } from '../../src/catalog/json.ts'

type Members = Record<string, unknown>

/**
 * Numbers this close count as equal, degrees, because a model's grid cell is not exactly at the
 * requested place.
 */
const GRID_STEP = 0.1

interface Parameter {
  recorded: unknown
  given: unknown
}

/**
 * A recorded answer with the caller's values: a member named like a parameter (`country_code` is
 * `countryCode`) that holds the recorded call's value gets the caller's, in its own type.
 */
export function withCallerValues(data: Members, recorded: Members, given: Members): Members {
  const changed = Object.keys(given).filter((name) => Object.hasOwn(recorded, name) && given[name] !== recorded[name])
  const parameters = new Map(
    changed.map((name): [string, Parameter] => [plainName(name), { recorded: recorded[name], given: given[name] }]),
  )
  return parameters.size === 0 ? data : (rewrite(data, parameters) as Members)
}

const plainName = (name: string): string => name.replaceAll('_', '').toLowerCase()

function rewrite(value: unknown, parameters: Map<string, Parameter>): unknown {
  if (Array.isArray(value)) return value.map((item) => rewrite(item, parameters))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const parameter = parameters.get(plainName(name))
      return [
        name,
        parameter && repeatsParameter(member, parameter.recorded)
          ? inTypeOf(member, parameter.given)
          : rewrite(member, parameters),
      ]
    }),
  )
}

function repeatsParameter(member: unknown, parameter: unknown): boolean {
  if (typeof member === 'number' && typeof parameter === 'number') return Math.abs(member - parameter) < GRID_STEP
  const isText = typeof member === 'string' || typeof member === 'number'
  return isText && String(member).toLowerCase() === String(parameter).toLowerCase()
}

/** An id may be a text as a parameter and a number in the data. */
function inTypeOf(member: unknown, value: unknown): unknown {
  if (typeof member === typeof value) return value
  if (typeof member === 'string') return String(value)
  const number = Number(value)
  return Number.isFinite(number) ? number : member
}
