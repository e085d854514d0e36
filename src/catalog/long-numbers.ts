import { readingOf } from './exact-number.ts'
import { isObject } from './json.ts'

/** Numbers that a double may not hold. Some texts look alike, which does no harm. */
const LONG_NUMBER = /(?<![\w"\\.+-])-?(?:\d[\d.]{15,}(?:e[-+]?\d+)?|[\d.]+e[-+]?\d{3,})(?=\s*(?:[\],}]|$))/gi

/** Not yet in the types of the compiler. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (text: string) => { rawJSON: string }
  isRawJSON: (value: unknown) => value is { rawJSON: string }
}

/**
 * Parses JSON. A number that a double cannot hold, such as 9007199254740993 or 1e400, becomes an
 * object that `JSON.stringify` writes as the number stands in the text.
 *
 * @throws SyntaxError
 */
export function parseKeepingDigits(text: string): unknown {
  // A reviver takes many times as long as parsing.
  const losesDigits = text.match(LONG_NUMBER)?.some((number) => readingOf(number) === 'another-number')
  if (!losesDigits) return JSON.parse(text)
  return JSON.parse(text, (_name: string, value: unknown, context?: { source: string }) => {
    if (typeof value !== 'number' || context === undefined) return value
    return readingOf(context.source) === 'another-number' ? rawJSON(context.source) : value
  })
}

/** The value with the nearest doubles in place of numbers that keep their digits. */
export function withDoubles(value: unknown): unknown {
  if (isRawJSON(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(withDoubles)
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withDoubles(inner)]))
    : value
}
