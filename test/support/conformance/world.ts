import assert from 'node:assert/strict'
import { type Account, type Answer, type RequestOptions, send, signUp } from '../client.ts'
import { type Gateway, startGateway } from '../gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../upstream-server.ts'

/** A running gateway and its users, as a client sees them. */
export interface World {
  gateway: Gateway
  upstream: UpstreamServer
  /**
   * An account on the Free plan. Only the statements about parameters, keys and teams count its
   * calls.
   */
  free: Account
  /** An account on the Elite plan, for statements that need many calls or every API. */
  elite: Account
  send: (path: string, options?: RequestOptions) => Promise<Answer>
  /** Objects that several statements share. The first statement that needs an object makes it. */
  memory: Record<string, Promise<unknown>>
}

/** A promise of the interface, and a check of it by a client. */
export interface Statement {
  says: string
  holds: (world: World) => Promise<unknown>
}

/**
 * Every API that a statement calls with a live key. Each kind of failure has an API of its own,
 * because failures lower the health of their API.
 */
const LIVE = [
  'weather', 'mock-data', 'dictionary', 'timezone', 'dog-images', 'meal-recipes', 'random-facts', 'currency', 'trivia',
  'countries', 'encyclopedia',
] // biome-ignore format: a list

export async function startWorld(): Promise<World> {
  const upstream = await startUpstreamServer()
  const gateway = await startGateway({ isInProcess: true, environment: upstream.environment(...LIVE) })
  const [free, elite] = await Promise.all([signUp(gateway), signUp(gateway, 'business')])
  return { gateway, upstream, free, elite, send: (path, options) => send(gateway, path, options), memory: {} }
}

export async function stopWorld({ gateway, upstream }: World): Promise<void> {
  await gateway.stop()
  await upstream.close()
}

/**
 * Asserts that an answer is a failure in the shape of its route: every member is a string, and a
 * link leads to the page of its code.
 */
export function assertFailure({ status, body, text }: Answer, expected: number, code: string): void {
  assert.equal(status, expected, text)
  const isCall = body.status === 'error'
  const failure = isCall ? body.error : body
  assert.equal(failure.code, code, text)
  const members = ['code', 'docs', 'hint', 'message', ...(isCall ? [] : ['error'])]
  assert.deepEqual(Object.keys(failure).sort(), members.sort())
  for (const member of members) assert.equal(typeof failure[member], 'string', member)
  assert.ok(failure.docs.endsWith(`/docs/errors#${code}`), failure.docs)
}

/** A statement that the gateway refuses a request. */
export function refuses(
  says: string,
  request: (world: World) => [path: string, options?: RequestOptions],
  status: number,
  code: string,
): Statement {
  return { says, holds: async (world) => assertFailure(await world.send(...request(world)), status, code) }
}

/** Pattern of an id (RFC 9562). */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const NOBODY = '00000000-0000-4000-8000-000000000000'

/** A date and time with its zone (RFC 3339). */
export function isDateTime(value: unknown): boolean {
  return typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(value) && !Number.isNaN(Date.parse(value))
}
