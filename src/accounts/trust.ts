import { createHmac } from 'node:crypto'
import type { SignupPolicy } from '../config.ts'
import type { User } from '../db/schema.ts'
import type { Trust } from '../db/users.ts'
import { type Network, networksAround } from '../throttles/client-network.ts'

/**
 * The name under which an account shares scarce upstreams with others. Anybody gets accounts,
 * addresses and proven mailboxes for nothing. So an account counts as a member of the networks that
 * hold the address it signed up from, however old the account is. An account has a share of its
 * own, named by its id, if it came from no public network, if an operator approved it, or if its
 * plan is not Free. A mail domain makes no group, because a stranger chooses it, and many honest
 * callers share a domain.
 *
 * @returns the id, or a path of networks, the widest first, with `/` between them: see
 *   `members.lua`. A network cannot be read from its name, which goes into jobs.
 */
export function shareGroupOf(account: Trust & Pick<User, 'id' | 'tier'>, secret: Buffer): string {
  const { id, tier, approved_at, signup_network } = account
  if (signup_network === null || approved_at !== null || tier !== 'developer') return id
  return networksAround(signup_network)
    .map((network) => part(network) + networkId(network, secret))
    .join('/')
}

/**
 * A /48 may have a quarter of a window while others ask, `q`, because tunnels give them away; any
 * other network half, `h`.
 */
function part({ kind, prefix }: Network): 'q' | 'h' {
  return kind === 'ipv6' && prefix === 48 ? 'q' : 'h'
}

/** 60 bits: names go into every entry of a cap's log. */
function networkId({ name }: Network, secret: Buffer): string {
  return createHmac('sha256', secret).update(name).digest('base64url').slice(0, 10)
}

export function forbiddenModes(
  account: Pick<User, 'disabled_at'> & Parameters<typeof missingForLiveCalls>[0],
  policy: SignupPolicy,
): ('live' | 'test')[] {
  if (account.disabled_at !== null) return ['live', 'test']
  return missingForLiveCalls(account, policy) === undefined ? [] : ['live']
}

/**
 * What an account lacks for live calls under the operator's policy; undefined if it may make
 * them.
 */
export function missingForLiveCalls(
  { email_verified_at, approved_at }: Pick<Trust, 'email_verified_at' | 'approved_at'>,
  policy: SignupPolicy,
): 'verification' | 'approval' | undefined {
  // An operator's approval stands for the proof of the address too.
  if (approved_at !== null) return undefined
  if (policy === 'approval') return 'approval'
  return policy === 'verified' && email_verified_at === null ? 'verification' : undefined
}
