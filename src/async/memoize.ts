import { LRUCache } from 'lru-cache'

/** A function that makes one value per key, when it is first needed. */
export interface Memoized<Arguments extends unknown[], Value> {
  (...values: Arguments): Value
  /** What was made so far, by key. */
  readonly made: { get: (key: string) => Value | undefined; readonly size: number; values: () => Iterable<Value> }
}

export function memoize<Arguments extends unknown[], Value>(
  keyOf: (...values: Arguments) => string,
  create: (...values: Arguments) => Value,
): Memoized<Arguments, Value> {
  const made = new Map<string, Value>()
  const get = (...values: Arguments): Value => {
    const key = keyOf(...values)
    const known = made.get(key)
    if (known !== undefined || made.has(key)) return known as Value
    const value = create(...values)
    made.set(key, value)
    return value
  }
  return Object.assign(get, { made })
}

/**
 * As `memoize`, but forgets what was not used for longest past `max` values: for keys of which
 * callers can make any number.
 */
export function memoizeRecent<Arguments extends unknown[], Value extends object>(
  keyOf: (...values: Arguments) => string,
  create: (...values: Arguments) => Value,
  max: number,
): Memoized<Arguments, Value> {
  const made = new LRUCache<string, Value>({ max })
  const get = (...values: Arguments): Value => {
    const key = keyOf(...values)
    const known = made.get(key)
    if (known !== undefined) return known
    const value = create(...values)
    made.set(key, value)
    return value
  }
  return Object.assign(get, { made })
}
