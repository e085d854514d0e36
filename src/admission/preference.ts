import type { IncomingHttpHeaders } from 'node:http'

export interface Preference {
  /** Milliseconds after which the answer is 202; undefined: wait for the result. */
  waitMs: number | undefined
  /** For `Preference-Applied`. */
  applied: string | undefined
}

/** Longer waits are ignored like any that cannot be met. */
const WAIT_DIGITS_MAX = 4

/** Reads `Prefer` (RFC 7240): `respond-async` is 202 at once, `wait=5` after 5 seconds; others are ignored. */
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

/** `wait=5` bounds the calls. The answer cannot be fetched later: `respond-async` is ignored. */
export function readBatchPreference(headers: IncomingHttpHeaders): Preference {
  const preference = readPreference(headers)
  return preference.waitMs ? preference : NONE
}
