import type { IncomingHttpHeaders } from 'node:http'

export interface Preference {
  /**
   * Milliseconds after which a call's answer is 202, or that calls of a batch may take; undefined:
   * wait for the result.
   */
  waitMs: number | undefined
  /** For `Preference-Applied`. */
  applied: string | undefined
}

/** Longer numbers are no waits. */
const WAIT_DIGITS_MAX = 9

/**
 * Reads `Prefer` (RFC 7240): `respond-async` is 202 at once, `wait=5` after 5 seconds; others are
 * ignored. A longer wait than `waitMsMax` is that long.
 */
export function readPreference(headers: IncomingHttpHeaders, waitMsMax: number): Preference {
  const preferences = String(headers.prefer ?? '')
    .toLowerCase()
    .split(/[,;]/)
    .map((part) => part.trim())
  for (const preference of preferences) {
    const [, seconds] = /^wait\s*=\s*"?(\d+)"?$/.exec(preference) ?? []
    if (seconds !== undefined && seconds.length <= WAIT_DIGITS_MAX) {
      const waitMs = Math.min(Number(seconds) * 1_000, waitMsMax)
      return { waitMs, applied: `wait=${Math.floor(waitMs / 1_000)}` }
    }
  }
  if (preferences.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  return NONE
}

const NONE: Preference = { waitMs: undefined, applied: undefined }

/** `wait=5` bounds the calls. The answer cannot be fetched later: `respond-async` is ignored. */
export function readBatchPreference(headers: IncomingHttpHeaders, waitMsMax: number): Preference {
  const preference = readPreference(headers, waitMsMax)
  return preference.waitMs ? preference : NONE
}
