import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../errors.ts'

/** How the caller wants to wait. */
export interface Preference {
  /** The answer is 202 when there is none by then, milliseconds; undefined: wait for the result. */
  waitMs: number | undefined
  /** What of the header was followed, for `Preference-Applied`. */
  applied: string | undefined
}

/**
 * Reads `Prefer` (RFC 7240): `respond-async` answers 202 at once, `wait=5` after that many seconds. Other preferences
 * are ignored, as the RFC wants.
 *
 * @throws GatewayError INVALID_PARAMETER for a wait that is no whole number of seconds
 */
export function readPreference(headers: IncomingHttpHeaders): Preference {
  const preferences = String(headers.prefer ?? '')
    .toLowerCase()
    .split(/[,;]/)
    .map((part) => part.trim())
  const wait = preferences.find((part) => part.startsWith('wait='))?.slice('wait='.length)
  if (wait !== undefined) {
    if (!/^\d{1,4}$/.test(wait)) {
      throw new GatewayError('INVALID_PARAMETER', {
        message: 'Prefer: wait must be a whole number of seconds.',
        tokens: { header: 'Prefer' },
      })
    }
    return { waitMs: Number(wait) * 1_000, applied: `wait=${wait}` }
  }
  if (preferences.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  return { waitMs: undefined, applied: undefined }
}
