import { isObject } from './json.ts'

/** A whole number that may have more digits than a double can hold, with what stands around it. */
const LONG_NUMBER = /[[,:\s]-?[1-9]\d{15,}\s*[\],}]/

/** Not yet in the types of the compiler. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (text: string) => { rawJSON: string }
  isRawJSON: (value: unknown) => value is { rawJSON: string }
}

/**
 * Parses JSON. A whole number with more digits than a double can hold becomes an object that
 * `JSON.stringify` writes with all its digits.
 *
 * @throws SyntaxError
 */
export function parseKeepingDigits(text: string): unknown {
  // Looking at each number takes several times as long as parsing.
  if (!LONG_NUMBER.test(text)) return JSON.parse(text)
  return JSON.parse(text, (_name: string, value: unknown, context?: { source: string }) => {
    const isLong = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
    return isLong && /^-?\d+$/.test(context?.source ?? '') ? rawJSON(context?.source ?? '') : value
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
