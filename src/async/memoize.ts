/** One value per key, made when it is first needed. */
export function memoize<Arguments extends unknown[], Value>(
  keyOf: (...values: Arguments) => string,
  create: (...values: Arguments) => Value,
): (...values: Arguments) => Value {
  const known = new Map<string, { value: Value }>()
  return (...values) => {
    const key = keyOf(...values)
    const entry = known.get(key) ?? { value: create(...values) }
    known.set(key, entry)
    return entry.value
  }
}
