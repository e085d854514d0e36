import { createHmac } from 'node:crypto'
import type { SignupPolicy } from '../config.ts'
import type { User } from '../db/schema.ts'
import type { Trust } from '../db/users.ts'
import { type Network, networksAround } from '../throttles/client-network.ts'

/**
 * The name under which an account shares scarce upstreams with others. Accounts, addresses and
 * proven mailboxes cost nothing, so an account shares with all accounts of the networks that hold
 * its sign-up address, however old the account is. An account has a share of its own, named by its
 * id, if it signed up from no public network, if an operator approved it, or if its plan is not
 * Free. A mail domain makes no group, because strangers choose it and many honest callers share a
 * domain.
 *
 * @returns the account's id, or a path of networks, the widest first, separated by `/` (see
 *   `members.lua`). The name goes into jobs, so it does not reveal the network.
 */
export function shareGroupOf(account: Trust & Pick<User, 'id' | 'tier'>, secret: Buffer): string {
  const { id, tier, approved_at, signup_network } = account
  if (signup_network === null || approved_at !== null || tier !== 'developer') return id
  return networksAround(signup_network)
    .map((network) => part(network) + networkId(network, secret))
    .join('/')
}

/**
 * How much of a window a network may have while others wait too: a quarter (`q`) for a /48, because
 * tunnels give /48s away; a half (`h`) for any other network.
 */
function part({ kind, prefix }: Network): 'q' | 'h' {
  return kind === 'ipv6' && prefix === 48 ? 'q' : 'h'
}

/** 60 bits, because the name stands in every entry of a cap's log. */
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
 * What an account still needs before the operator's policy allows live calls; undefined if it needs
 * nothing.
 */
export function missingForLiveCalls(
  { email_verified_at, approved_at }: Pick<Trust, 'email_verified_at' | 'approved_at'>,
  policy: SignupPolicy,
): 'verification' | 'approval' | undefined {
  // An operator's approval replaces the proof of the address too.
  if (approved_at !== null) return undefined
  if (policy === 'approval') return 'approval'
  return policy === 'verified' && email_verified_at === null ? 'verification' : undefined
}
