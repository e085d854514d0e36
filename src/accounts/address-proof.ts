import { jwtVerify, SignJWT } from 'jose'
import type { Secret } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { secretOf } from './session-token.ts'
import { isUuid } from './uuid.ts'

/** An account, and the address that it proves to receive mail at. */
export interface AddressProof {
  userId: string
  email: string
}

const ISSUER = 'agent-api-gateway'
const TYPE = 'address-proof+jwt'

const PROOF_SECONDS = 86_400

/**
 * Signs the token of a mailed link; it is good for a day. `now` is the clock of Redis, because the
 * link may reach another node.
 */
export function signAddressProof(secrets: Secret[], { userId, email }: AddressProof, now: number): Promise<string> {
  const [current] = secrets
  if (!current) throw new Error('no JWT secret')
  return new SignJWT({ email })
    .setProtectedHeader({ alg: 'HS256', kid: current.id, typ: TYPE })
    .setIssuer(ISSUER)
    .setSubject(userId)
    .setIssuedAt(Math.floor(now / 1_000))
    .setExpirationTime(Math.floor(now / 1_000) + PROOF_SECONDS)
    .sign(current.bytes)
}

/** @throws GatewayError INVALID_TOKEN for a token that is forged, over, or of another kind */
export async function verifyAddressProof(secrets: Secret[], token: string, now: number): Promise<AddressProof> {
  const refuse = (cause?: unknown) =>
    new GatewayError('INVALID_TOKEN', {
      message: 'The link is not valid, or is more than a day old.',
      hint: 'Request the mail again with POST /v1/auth/verification',
      cause,
    })
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => secretOf(secrets, kid), {
      algorithms: ['HS256'],
      issuer: ISSUER,
      typ: TYPE,
      currentDate: new Date(now),
      requiredClaims: ['exp', 'iat', 'sub', 'email'],
    })
    const { sub, email } = payload
    if (isUuid(sub) && typeof email === 'string') return { userId: sub, email }
  } catch (cause) {
    throw refuse(cause)
  }
  throw refuse()
}
