const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a value is a UUID in the form we write it (RFC 9562). */
export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

/** A UUID of any case in the form we write; any other text unchanged. */
export function inOwnForm(text: string): string {
  const lower = text.toLowerCase()
  return isUuid(lower) ? lower : text
}
