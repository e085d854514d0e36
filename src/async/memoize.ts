/** A function that makes one value per key, when it is first needed. */
export interface Memoized<Arguments extends unknown[], Value> {
  (...values: Arguments): Value
  /** What was made so far, by key. */
  readonly made: ReadonlyMap<string, Value>
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
