import { errors, jwtVerify, SignJWT } from 'jose'
import type { Secret } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { isUuid } from './uuid.ts'

/** How long a log-in lasts, milliseconds. Use does not prolong it. */
export const SESSION_MS = 24 * 60 * 60 * 1_000

const ISSUER = 'agent-api-gateway'
const AUDIENCE = 'agent-api-gateway'
const TYPE = 'session+jwt'

/**
 * What a session token says: the account and the log-in. Roles and tier are never claims, because
 * they can change while the token is valid.
 */
export interface SessionClaims {
  userId: string
  sessionId: string
}

/** Signs the token of a log-in (JWS HS256, RFC 7515) with the current secret. */
export function signSessionToken(secrets: Secret[], claims: SessionClaims, expiresAt: Date): Promise<string> {
  const [current] = secrets
  if (!current) throw new Error('no JWT secret')
  return (
    new SignJWT({ sid: claims.sessionId })
      .setProtectedHeader({ alg: 'HS256', kid: current.id, typ: TYPE })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(claims.userId)
      // The log-in begins when its end was computed, not when the database stored it.
      .setIssuedAt(new Date(expiresAt.getTime() - SESSION_MS))
      .setExpirationTime(expiresAt)
      .sign(current.bytes)
  )
}

/** How far the clocks of nodes may differ, seconds. They follow the clock of Redis. */
const CLOCK_TOLERANCE_SECONDS = 5

/**
 * Verifies the signature and claims of a session token. The caller looks up whether the log-in is
 * still valid. `now` is the clock by which tokens are signed, so that a log-in on one node is valid
 * on all nodes at once, even if the clocks of their machines differ.
 *
 * @returns the claims, and when the token ends, milliseconds since the epoch
 * @throws GatewayError INVALID_TOKEN, or TOKEN_EXPIRED if the token is valid but its time is over
 */
export async function verifySessionToken(
  secrets: Secret[],
  token: string,
  now: number,
): Promise<SessionClaims & { expiresAt: number }> {
  // The library also accepts padding and line breaks, which are spellings that we never write.
  if (!COMPACT_JWS.test(token)) {
    throw new GatewayError('INVALID_TOKEN', {
      message: 'The credential is neither an API key (agw_…) nor a session token.',
      hint: 'Send an API key, which the portal shows when you create it, or the session token from POST /v1/auth/login',
    })
  }
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => secretOf(secrets, kid), {
      algorithms: ['HS256'],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: TYPE,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(now),
      requiredClaims: ['exp', 'iat', 'sub', 'sid'],
    })
    const { sub, sid, iat, exp } = payload
    const isFromFuture = typeof iat !== 'number' || iat > now / 1_000 + CLOCK_TOLERANCE_SECONDS
    if (!isUuid(sub) || !isUuid(sid) || isFromFuture || exp === undefined) throw new GatewayError('INVALID_TOKEN')
    return { userId: sub, sessionId: sid, expiresAt: exp * 1_000 }
  } catch (cause) {
    // Whatever error the library throws for a hostile token, the caller gets a 401.
    throw new GatewayError(cause instanceof errors.JWTExpired ? 'TOKEN_EXPIRED' : 'INVALID_TOKEN', { cause })
  }
}

/** @throws GatewayError INVALID_TOKEN if the secret is no longer configured */
export function secretOf(secrets: Secret[], kid: string | undefined): Buffer {
  const secret = secrets.find(({ id }) => id === kid)
  if (!secret) throw new GatewayError('INVALID_TOKEN')
  return secret.bytes
}

/** Three base64url parts without padding (RFC 7515, 7.1). */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/
