import { LRUCache } from 'lru-cache'

/** A function that makes one value for each key, when the key is first used. */
export interface Memoized<Arguments extends unknown[], Value> {
  (...values: Arguments): Value
  /** The values made so far, by key. */
  readonly made: { get: (key: string) => Value | undefined; readonly size: number; values: () => Iterable<Value> }
}

/**
 * @param max if callers can make any number of keys: beyond so many values, the least recently used
 *   value is forgotten. Default: no bound.
 */
export function memoize<Arguments extends unknown[], Value extends {}>(
  keyOf: (...values: Arguments) => string,
  create: (...values: Arguments) => Value,
  max?: number,
): Memoized<Arguments, Value> {
  const made = max === undefined ? new Map<string, Value>() : new LRUCache<string, Value>({ max })
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
