import { createHmac } from 'node:crypto'
import type { SignupPolicy } from '../config.ts'
import type { User } from '../db/schema.ts'
import type { Trust } from '../db/users.ts'

/** How long an account is young, milliseconds. */
const YOUNG_MS = 86_400_000

/**
 * The name under which an account shares scarce upstreams with others. Accounts are free, so those that are younger
 * than a day or unproven and signed up from one public network share as one; every other account is a group of its
 * own, named by its id. An account is proven by its address, by an operator's approval, or by a tier that an operator
 * gave it. The network is not readable from the name, which goes into jobs.
 */
export function shareGroupOf(account: Trust & Pick<User, 'id' | 'tier'>, secret: Buffer, now = Date.now()): string {
  const { id, tier, created_at, email_verified_at, approved_at, signup_network } = account
  if (signup_network === null) return id
  const isProven = email_verified_at !== null || approved_at !== null || tier !== 'developer'
  if (isProven && now - created_at.getTime() >= YOUNG_MS) return id
  return `network:${createHmac('sha256', secret).update(signup_network).digest('base64url').slice(0, 22)}`
}

export function forbiddenModes(
  account: Pick<User, 'disabled_at'> & Parameters<typeof missingForLiveCalls>[0],
  policy: SignupPolicy,
): ('live' | 'test')[] {
  if (account.disabled_at !== null) return ['live', 'test']
  return missingForLiveCalls(account, policy) === undefined ? [] : ['live']
}

/** What an account lacks for live calls under the operator's policy; undefined when it may make them. */
export function missingForLiveCalls(
  { email_verified_at, approved_at }: Pick<Trust, 'email_verified_at' | 'approved_at'>,
  policy: SignupPolicy,
): 'verification' | 'approval' | undefined {
  // An operator's approval stands for the proof of the address too.
  if (approved_at !== null) return undefined
  if (policy === 'approval') return 'approval'
  return policy === 'verified' && email_verified_at === null ? 'verification' : undefined
}
