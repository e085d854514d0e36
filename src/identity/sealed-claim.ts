import { open, seal } from '../accounts/secret-box.ts'
import type { Secret } from '../config.ts'
import { GatewayError } from '../errors.ts'
import type { RedisClock } from '../redis/clock.ts'
import type { Claim } from './account-of-person.ts'
import { SIGN_IN_SECONDS } from './pending-cookie.ts'

/** A claim, and the page that the person wanted to open. */
export interface ClaimOnTheWay {
  claim: Claim
  next: string
}

interface SealDeps {
  secrets: Secret[]
  /** The clock of Redis, because another node may open the claim. */
  clock: Pick<RedisClock, 'now'>
}

const RECORD = 'claim of an account'

/**
 * Seals a claim for a form field. Whoever sends it back is the person whom the provider signed in.
 */
export function sealClaim({ secrets, clock }: SealDeps, onTheWay: ClaimOnTheWay): string {
  const endsAt = clock.now() + SIGN_IN_SECONDS * 1_000
  const { secretId, bytes } = seal(secrets, RECORD, JSON.stringify({ ...onTheWay, endsAt }))
  return `${secretId}.${bytes.toString('base64url')}`
}

/** @throws GatewayError INVALID_TOKEN if this gateway did not seal the text, or it has expired */
export function openClaim({ secrets, clock }: SealDeps, text: string): ClaimOnTheWay {
  const [secretId = '', bytes = ''] = text.split('.')
  const over = (cause?: unknown) =>
    new GatewayError('INVALID_TOKEN', { message: 'The sign-in has expired.', hint: 'Sign in again', cause })
  let opened: ClaimOnTheWay & { endsAt: number }
  try {
    opened = JSON.parse(open(secrets, RECORD, { secretId, bytes: Buffer.from(bytes, 'base64url') }))
  } catch (error) {
    throw over(error)
  }
  if (opened.endsAt < clock.now()) throw over()
  return opened
}
