/** Usual lifetimes of stored answers, in seconds; a month has thirty days. */
export const lifetime = { hour: 3_600, day: 86_400, week: 604_800, month: 2_592_000 }

/**
 * A common cache rule: fresh for some seconds, and then served for the same time again while it is
 * refreshed.
 */
export function freshFor(seconds: number): { seconds: number; staleWhileRevalidateSeconds: number } {
  return { seconds, staleWhileRevalidateSeconds: seconds }
}
