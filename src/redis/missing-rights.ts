import type { RedisConnection } from './connection.ts'
import type { RedisError } from './redis-error.ts'

/**
 * How long a refusal counts after it happened, milliseconds: an operator who grants the right sees
 * the end of it.
 */
const REFUSED_MS = 60_000

/**
 * Event of a connection: Redis refused a command for want of rights. Its values are the words for
 * it and the error.
 */
export const REFUSED = 'refused'

const refusals = new WeakMap<RedisConnection, Map<string, number>>()

/**
 * Remembers that Redis refused a command of this connection because the ACL of its user lacks a
 * right (NOPERM).
 */
export function noteRefusal(redis: RedisConnection, command: string, error: RedisError): void {
  const words = wordsOf(command, error.message)
  const known = refusals.get(redis) ?? new Map<string, number>()
  refusals.set(redis, known.set(words, performance.now()))
  redis.emit(REFUSED, words, error)
}

/** What the user of this connection was refused in the last minute, one sentence each. */
export function missingRights(redis: RedisConnection): string[] {
  const now = performance.now()
  return [...(refusals.get(redis) ?? [])].flatMap(([words, at]) => (now - at < REFUSED_MS ? [words] : []))
}

/** Names neither the user nor the key: readiness is public. */
function wordsOf(command: string, message: string): string {
  const name = command.toUpperCase()
  // "… to run the 'info' command", "… to access one of the keys used as arguments", in newer
  // versions "… to access a key".
  const part = /to access .*\b(key|channel)/i.exec(message)?.[1]
  const what = part === undefined ? `the command ${name}` : `a ${part} of the command ${name}`
  return `Redis refuses ${what} to this user: grant what deploy/redis.acl lists`
}
