/** One value per key, made when first asked for. */
export function keyed<Arguments extends unknown[], Value>(
  keyOf: (...values: Arguments) => string,
  create: (...values: Arguments) => Value,
): (...values: Arguments) => Value {
  const known = new Map<string, Value>()
  return (...values) => {
    const key = keyOf(...values)
    const value = known.get(key)
    if (value !== undefined) return value
    const created = create(...values)
    known.set(key, created)
    return created
  }
}
