import type { RedisConnection } from './connection.ts'
import type { RedisError } from './redis-error.ts'

/**
 * How long a refusal is reported, milliseconds. If the operator grants the right, the report ends
 * after this time.
 */
const REFUSED_MS = 60_000

/**
 * Event of a connection: Redis refused a command because the user lacks a right. The event has the
 * words for the refusal and the error.
 */
export const REFUSED = 'refused'

const refusals = new WeakMap<RedisConnection, Map<string, number>>()

/**
 * Records that Redis refused a command of this connection because the ACL of its user lacks a right
 * (NOPERM).
 */
export function noteRefusal(redis: RedisConnection, command: string, error: RedisError): void {
  const words = wordsOf(command, error.message)
  const known = refusals.get(redis) ?? new Map<string, number>()
  refusals.set(redis, known.set(words, performance.now()))
  redis.emit(REFUSED, words, error)
}

/** The refusals of this connection in the last minute, one sentence each. */
export function missingRights(redis: RedisConnection): string[] {
  const now = performance.now()
  return [...(refusals.get(redis) ?? [])].flatMap(([words, at]) => (now - at < REFUSED_MS ? [words] : []))
}

/** The sentence names neither the user nor the key, because readiness is public. */
function wordsOf(command: string, message: string): string {
  const name = command.toUpperCase()
  // Redis says "… to run the 'info' command" or "… to access one of the keys used as arguments";
  // newer versions say "… to access a key".
  const part = /to access .*\b(key|channel)/i.exec(message)?.[1]
  const what = part === undefined ? `the command ${name}` : `a ${part} of the command ${name}`
  return `Redis refuses ${what} to this user: grant what deploy/redis.acl lists`
}
