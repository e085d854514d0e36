import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isApiKeyShaped } from '../accounts/api-key.ts'
import { GatewayError } from '../errors.ts'
import { readBearer } from '../http/request/bearer.ts'

/** Caches know it by `cacheKey`, never by the secret. */
export interface SentCredential {
  kind: 'key' | 'session' | 'token'
  secret: string
  cacheKey: string
  /**
   * Whether its caller asks for a test call, which any credential may make; a test key makes no
   * others.
   */
  wantsTest: boolean
}

export function principalKey({ cacheKey, wantsTest }: SentCredential): string {
  return wantsTest ? `test ${cacheKey}` : cacheKey
}

export function readCredential(headers: IncomingHttpHeaders): SentCredential {
  return { ...sentCredential(headers), wantsTest: headers['x-gateway-mode'] === 'test' }
}

function sentCredential(headers: IncomingHttpHeaders): Omit<SentCredential, 'wantsTest'> {
  const apiKey = headers['x-api-key']
  if (apiKey !== undefined) return keyCredential(String(apiKey))
  const bearer = readBearer(headers)
  if (bearer === undefined) throw new GatewayError('AUTH_REQUIRED')
  if (bearer.startsWith('agw_')) return keyCredential(bearer)
  // A session token has dots, and an access token is 43 characters without.
  if (/^[\w-]{43}$/.test(bearer)) {
    return { kind: 'token', secret: bearer, cacheKey: `token ${hash('sha256', bearer, 'base64')}` }
  }
  return { kind: 'session', secret: bearer, cacheKey: `session ${hash('sha256', bearer, 'base64')}` }
}

function keyCredential(secret: string): Omit<SentCredential, 'wantsTest'> {
  // A wrong checksum is refused without a look-up.
  if (!isApiKeyShaped(secret)) throw malformedKey(secret)
  return { kind: 'key', secret, cacheKey: hash('sha256', secret, 'base64') }
}

/** If it is clear what was sent in place of a key, says what to send. */
function malformedKey(sent: string): GatewayError {
  if (/agw_(live|test)_/.test(sent)) {
    return new GatewayError('INVALID_API_KEY', {
      message: 'The API key is not complete, or something stands beside it.',
      hint: 'Send the whole key and nothing else, as it was shown when it was created',
    })
  }
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(sent)) {
    return new GatewayError('INVALID_API_KEY', {
      message: 'This is a session token, and no API key.',
      hint: 'Send it as Authorization: Bearer',
    })
  }
  return new GatewayError('INVALID_API_KEY')
}
