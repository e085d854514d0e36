import { members, text } from '../../catalog/json.ts'
import { overLimit } from '../../catalog/response-class.ts'
import type { Caps } from '../../catalog/upstream.ts'
import type { UpstreamDeclaration } from '../../catalog/upstream-file.ts'
import { path } from '../../catalog/upstream-request.ts'

/** Free at GitHub, but every request counts against our own cap. */
export const githubProbe = { path: path`/rate_limit` }

/**
 * What GitHub's APIs have in common. `resource` is its name for the limit that the requests count
 * against; `keyCaps` are the caps of a key.
 */
export function github(
  resource: string,
  keyCaps: Caps,
): Pick<UpstreamDeclaration, 'baseUrl' | 'headers' | 'credential' | 'rateHeaders' | 'reservedParameters' | 'classify'> {
  return {
    baseUrl: 'https://api.github.com',
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    credential: {
      accessMode: 'byok_available',
      in: 'header',
      name: 'authorization',
      format: (key) => `Bearer ${key}`,
      caps: keyCaps,
      check: { request: githubProbe, isConclusive: true },
    },
    rateHeaders: {
      remaining: 'x-ratelimit-remaining',
      reset: 'x-ratelimit-reset',
      resetIs: 'epoch-seconds',
      appliesWhen: { header: 'x-ratelimit-resource', value: resource },
    },
    reservedParameters: ['access_token', 'client_id', 'client_secret', 'callback'],
    // A secondary limit is a 403 or 429 that need not say when to come back; GitHub then asks for a
    // minute.
    classify: ({ status, headers, body }) => {
      if (status !== 403 && status !== 429) return undefined
      if (headers['retry-after'] !== undefined || headers['x-ratelimit-remaining']?.trim() === '0') return undefined
      const message = text(members(body).message) ?? ''
      const isLimit = headers['gh-limited-by'] !== undefined || /rate limit|abuse detection/i.test(message)
      return isLimit ? overLimit(60_000) : undefined
    },
  }
}
