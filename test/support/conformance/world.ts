import assert from 'node:assert/strict'
import { type Account, type Answer, type RequestOptions, send, signUp } from '../client.ts'
import { type Gateway, startGateway } from '../gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../upstream-server.ts'

/** A running gateway and who uses it, as the statements see them: from outside. */
export interface World {
  gateway: Gateway
  upstream: UpstreamServer
  /**
   * On the Free plan; its calls are counted by no statement but those about parameters, keys and
   * teams.
   */
  free: Account
  /** On the Elite plan, for statements that need many calls and every API. */
  elite: Account
  send: (path: string, options?: RequestOptions) => Promise<Answer>
  /** What statements of one subject share, made by the first that needs it. */
  memory: Record<string, Promise<unknown>>
}

/** One sentence of the specification or the contract, and how it shows from outside. */
export interface Statement {
  says: string
  holds: (world: World) => Promise<unknown>
}

/**
 * Every API that a statement calls with a live key; each kind of failure has one of its own, for
 * health remembers.
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
 * A failure in the shape of its route, with every member a string and a link that leads to its
 * code.
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

/** A statement that one request is refused. */
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
