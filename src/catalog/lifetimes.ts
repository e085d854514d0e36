/** Usual lifetimes of stored answers, in seconds; a month has thirty days. */
export const lifetime = { hour: 3_600, day: 86_400, week: 604_800, month: 2_592_000 }

/**
 * A cache rule's usual pair: fresh for some seconds, and served for as many more while it is
 * refreshed.
 */
export function freshFor(seconds: number): { seconds: number; staleWhileRevalidateSeconds: number } {
  return { seconds, staleWhileRevalidateSeconds: seconds }
}
