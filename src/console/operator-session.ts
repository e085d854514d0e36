import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { writeSessionCookie } from '../http/cookies.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/** The cookie of the console. It carries a random session id and no secret of the service. */
export const COOKIE = 'agw_console'

/** How long a log-in lasts, seconds. */
const SESSION_SECONDS = 12 * 3_600

/** Sessions that a process remembers for the time without Redis; sessions used longest ago are forgotten first. */
const REMEMBERED_MAX = 1_000

/** Whether two texts are equal, in a time that tells nothing of where they differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'operator').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

interface Remembered {
  endsAt: number
  /** Redis has it, or had it: without it Redis decides whether the session is still valid. */
  isStored: boolean
}

interface SessionDeps {
  redis: RedisConnection
  operatorToken: string
  log: Log
}

/**
 * Log-ins of the console. Redis holds them, so that a log-out in one process ends the session in all of them. While Redis
 * does not answer, sessions that this process has seen go on (an operator needs the console most then) and all others
 * are refused.
 */
export class OperatorSessions {
  readonly #deps: SessionDeps
  readonly #remembered = new LRUCache<string, Remembered>({ max: REMEMBERED_MAX })

  constructor(deps: SessionDeps) {
    this.#deps = deps
  }

  /** Begins a session. @returns the cookie's value */
  async begin(): Promise<string> {
    const id = randomBytes(32).toString('base64url')
    this.#remember(id, {
      endsAt: Date.now() + SESSION_SECONDS * 1_000,
      isStored: await this.#store(id, SESSION_SECONDS),
    })
    return id
  }

  /** Whether a cookie's value is a session that began under the present token and has not ended. */
  async isValid(id: string): Promise<boolean> {
    if (!/^[\w-]{43}$/.test(id)) return false
    const remembered = this.#remembered.get(this.#key(id))
    const leftSeconds = Math.ceil(((remembered?.endsAt ?? 0) - Date.now()) / 1_000)
    try {
      const storedSeconds = await this.#deps.redis.ttl(this.#key(id))
      if (storedSeconds > 0) {
        this.#remember(id, { endsAt: Date.now() + storedSeconds * 1_000, isStored: true })
        return true
      }
    } catch {
      return leftSeconds > 0
    }
    // It began while Redis was away: Redis learns of it now. A session that Redis had and has no longer is over.
    if (remembered && !remembered.isStored && leftSeconds > 0) {
      this.#remember(id, { ...remembered, isStored: await this.#store(id, leftSeconds) })
      return true
    }
    this.#remembered.delete(this.#key(id))
    return false
  }

  /** Ends a session everywhere. @throws what Redis throws: then only this process knows that it has ended */
  async end(id: string): Promise<void> {
    this.#remembered.delete(this.#key(id))
    await this.#deps.redis.del(this.#key(id))
  }

  async #store(id: string, seconds: number): Promise<boolean> {
    try {
      await this.#deps.redis.set(this.#key(id), '1', 'EX', seconds)
      return true
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'failed to store an operator session')
      return false
    }
  }

  #remember(id: string, session: Remembered): void {
    this.#remembered.set(this.#key(id), session)
  }

  /** Keyed by the operator token: another token, and every session is over. Redis never holds an id that opens anything. */
  #key(id: string): string {
    const digest = createHmac('sha256', this.#deps.operatorToken).update(`console session ${id}`).digest('base64url')
    return keys.consoleSession(digest)
  }
}

/** `Set-Cookie` of a session; of the end of one when the value is undefined. */
export function consoleCookie(value: string | undefined, isSecure: boolean): string {
  return writeSessionCookie({ name: COOKIE, value, lifeSeconds: SESSION_SECONDS, isSecure })
}
