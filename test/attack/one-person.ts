import { publicNetworkOf } from '../../src/throttles/client-network.ts'
import { send, signUp, sql } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import type { Play, UpstreamServer } from '../support/upstream-server.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** Requests an hour that each of the APIs allows, as the look-up of users of a code host does. */
const PER_HOUR = 60
const CAPS = `concurrency=8,${PER_HOUR}/3600`

/** A person with addresses of a network, and the API that this person tries to use up. */
interface Person {
  name: string
  slug: string
  /** Path of the call with this number. No two calls have the same path. */
  path: (index: number) => string
  body: Play
  address: (index: number) => string
  areProven?: true
}

const hex = (index: number): string => index.toString(16).padStart(2, '0')

const PEOPLE: Person[] = [
  {
    ...{ name: 'one IPv6 /48', slug: 'code-host-user', path: (index) => `profile?username=user-${index}` },
    body: () => ({ login: 'someone', id: 1, followers: 1, following: 1 }),
    address: (index) => `2001:470:1234:${hex(index)}00::1`,
  },
  {
    ...{ name: 'one IPv4 address, proven', slug: 'meal-recipes', path: (index) => `search?s=meal${index}` },
    body: () => ({ meals: null }),
    ...{ address: () => '203.0.113.7', areProven: true },
  },
  {
    ...{ name: 'one IPv4 /24', slug: 'tech-forum', path: (index) => `story?id=${index + 1}` },
    // The gateway accepts only the item that it requested.
    body: ({ url }) => ({
      ...{ id: Number(/(\d+)\.json/.exec(url)?.[1]), type: 'story', title: 'A story', by: 'someone' },
      ...{ time: 1_700_000_000, score: 1 },
    }),
    address: (index) => `203.0.113.${index + 1}`,
  },
  {
    ...{ name: 'one address, as 6to4', slug: 'encyclopedia', path: (index) => `summary?title=Title${index}` },
    body: () => ({ title: 'A title', extract: 'A text.', pageid: 1 }),
    address: (index) => `2002:4a7d:2d64:${index}::1`,
  },
]

/** Accounts, addresses and verified mailboxes are free, so a single person makes sixty accounts. */
export const onePerson: Scenario = {
  name: 'one-person',
  claim:
    "sixty accounts of one person that take an hourly cap of sixty leave room: other networks' calls are served at once",
  slugs: PEOPLE.map(({ slug }) => slug),
  environment: {
    ...{ TRUST_PROXY: '127.0.0.1', SIGNUP_PER_MINUTE: '0', SIGNUP_PER_HOUR: '0', SIGNUP_PER_DAY: '0' },
    ...Object.fromEntries(PEOPLE.map(({ slug }) => [`UPSTREAM_${slug.toUpperCase().replaceAll('-', '_')}_CAPS`, CAPS])),
  },
  run: async (gateway, seconds, upstream) =>
    await attackAs(gateway, upstream, { people: PEOPLE, isLong: seconds >= 10 }),
}

/** The short form leaves out the API that another scenario on the same gateway uses up. */
export const onePersonShort: Scenario = {
  ...onePerson,
  slugs: PEOPLE.slice(1).map(({ slug }) => slug),
  run: async (gateway, _seconds, upstream) =>
    await attackAs(gateway, upstream, { people: PEOPLE.slice(1), isLong: false }),
}

async function attackAs(
  gateway: Gateway,
  upstream: UpstreamServer | undefined,
  { people, isLong }: { people: Person[]; isLong: boolean },
): Promise<Outcome> {
  const figures: Outcome['figures'] = {}
  let isPassed = true
  for (const person of people) {
    const { taken, served, ms } = await attack(gateway, upstream, { person, isLong })
    isPassed &&= served === OTHERS.length
    figures[person.name] = `${taken} of ${PER_HOUR}, others ${served} of ${OTHERS.length} within ${ms} ms`
  }
  return { isPassed, figures }
}

const OTHERS = ['198.51.100.9', '192.0.2.8', '8.8.4.4', '2001:4860:4860::8888', '2a00:1450:4001::1']

async function attack(
  gateway: Gateway,
  upstream: UpstreamServer | undefined,
  { person, isLong }: { person: Person; isLong: boolean },
): Promise<{ taken: number; served: number; ms: number }> {
  upstream?.play(person.slug, person.body)
  const accounts = isLong ? PER_HOUR : PER_HOUR / 6
  let calls = 0
  const call = async (key: string, address: string): Promise<number> => {
    const path = `/v1/call/${person.slug}/${person.path(calls)}`
    calls += 1
    const headers = { 'x-forwarded-for': address }
    return (await send(gateway, path, { key, headers })).status
  }
  const attackers: Caller[] = []
  for (let index = 0; index < accounts; index += 1) {
    attackers.push(await signUpFrom(gateway, person.address(index), person.areProven))
  }
  const before = upstream?.arrivalsOf(person.slug).length ?? 0
  for (let round = 0; round < PER_HOUR / accounts; round += 1) {
    for (const { key, address } of attackers) await call(key, address)
  }
  const taken = (upstream?.arrivalsOf(person.slug).length ?? 0) - before
  const others = await Promise.all(OTHERS.map((address) => signUpFrom(gateway, address)))
  const startedAt = performance.now()
  const statuses: number[] = await Promise.all(others.map(({ key, address }) => call(key, address)))
  const ms = Math.round(performance.now() - startedAt)
  return { taken, served: statuses.filter((status) => status === 200).length, ms }
}

export interface Caller {
  key: string
  token: string
  address: string
}

/**
 * Signs up from an address, and returns the account with its live key. With `isProven` the account
 * is verified and looks two days old.
 */
export async function signUpFrom(gateway: Gateway, address: string, isProven = false): Promise<Caller> {
  const { id, live: key, token } = await signUp(gateway)
  await sql(gateway, 'update users set signup_network = $1 where id = $2', [publicNetworkOf(address) ?? null, id])
  const proof = "update users set email_verified_at = now(), created_at = now() - interval '2 days' where id = $1"
  if (isProven) await sql(gateway, proof, [id])
  return { key, token, address }
}
