import type { IncomingHttpHeaders } from 'node:http'

/** How the caller wants to wait. */
export interface Preference {
  /** The answer is 202 when there is none by then, milliseconds; undefined: wait for the result. */
  waitMs: number | undefined
  /** What of the header was followed, for `Preference-Applied`. */
  applied: string | undefined
}

/** A wait of more digits than these, in seconds, is ignored like any that cannot be met. */
const WAIT_DIGITS_MAX = 4

/**
 * Reads `Prefer` (RFC 7240): `respond-async` answers 202 at once, `wait=5` after that many seconds. Other preferences,
 * and a wait that is no whole number of seconds, are ignored, as the RFC wants.
 */
export function readPreference(headers: IncomingHttpHeaders): Preference {
  const preferences = String(headers.prefer ?? '')
    .toLowerCase()
    .split(/[,;]/)
    .map((part) => part.trim())
  for (const preference of preferences) {
    const [, seconds] = /^wait\s*=\s*"?(\d+)"?$/.exec(preference) ?? []
    if (seconds !== undefined && seconds.length <= WAIT_DIGITS_MAX) {
      return { waitMs: Number(seconds) * 1_000, applied: `wait=${seconds}` }
    }
  }
  if (preferences.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  return NONE
}

const NONE: Preference = { waitMs: undefined, applied: undefined }

/**
 * Reads `Prefer` of a batch: `wait=5` is how long its calls may take. Its lines are the answer, so it cannot be fetched
 * later: `respond-async`, and a wait of no time, are ignored.
 */
export function readBatchPreference(headers: IncomingHttpHeaders): Preference {
  const preference = readPreference(headers)
  return preference.waitMs ? preference : NONE
}
