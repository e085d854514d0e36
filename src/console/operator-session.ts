import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { writeSessionCookie } from '../http/request/cookies.ts'
import type { Log } from '../log.ts'
import type { Operator } from '../operator/actor.ts'
import type { RedisClock } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/** The cookie of the console. It holds a random session id and no secret of the service. */
export const COOKIE = 'agw_console'

/** How long a log-in lasts, seconds. */
const SESSION_SECONDS = 12 * 3_600

/**
 * Most sessions that a process remembers for times without Redis. The least recently used are
 * forgotten first.
 */
const REMEMBERED_MAX = 1_000

/** Compares two texts in constant time. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'operator').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** A session as Redis stores it: the operator, and when it ends by the clock of Redis. */
interface SessionRecord {
  operator: Operator
  endsAt: number
}

interface Remembered extends SessionRecord {
  /** Whether Redis has, or had, the session. If not, the session began while Redis was away. */
  isStored: boolean
}

interface SessionDeps {
  redis: RedisConnection
  clock: Pick<RedisClock, 'now'>
  operatorToken: string
  log: Log
}

/**
 * The sessions of the console. Redis stores them, so that a log-out in one process ends the session
 * in all. While Redis does not answer, sessions that this process has seen continue, because
 * operators need the console most then. All other sessions are refused.
 */
export class OperatorSessions {
  readonly #deps: SessionDeps
  readonly #remembered = new LRUCache<string, Remembered>({ max: REMEMBERED_MAX })

  constructor(deps: SessionDeps) {
    this.#deps = deps
  }

  /**
   * Begins a session.
   * @returns the cookie's value
   */
  async begin(operator: Operator): Promise<string> {
    const id = randomBytes(32).toString('base64url')
    const endsAt = this.#deps.clock.now() + SESSION_SECONDS * 1_000
    this.#remember(id, { operator, endsAt, isStored: await this.#store(id, { operator, endsAt }) })
    return id
  }

  /**
   * The operator whose session has this id, if the session began under the present token and has
   * not ended; otherwise undefined.
   */
  async find(id: string): Promise<Operator | undefined> {
    if (!/^[\w-]{43}$/.test(id)) return undefined
    const remembered = this.#remembered.get(this.#key(id))
    const known = remembered && remembered.endsAt > this.#deps.clock.now() ? remembered : undefined
    try {
      const stored = readRecord(await this.#deps.redis.get(this.#key(id)))
      if (stored && stored.endsAt > this.#deps.clock.now()) {
        this.#remember(id, { ...stored, isStored: true })
        return stored.operator
      }
    } catch {
      return known?.operator
    }
    // The session began while Redis was away, so it is stored in Redis now. If Redis had the
    // session and has it no longer, the session has ended.
    if (known && !known.isStored) {
      this.#remember(id, { ...known, isStored: await this.#store(id, known) })
      return known.operator
    }
    this.#remembered.delete(this.#key(id))
    return undefined
  }

  /**
   * Ends a session everywhere.
   *
   * @throws what Redis throws; then only this process knows that the session has ended
   */
  async end(id: string): Promise<void> {
    this.#remembered.delete(this.#key(id))
    await this.#deps.redis.del(this.#key(id))
  }

  async #store(id: string, { operator, endsAt }: SessionRecord): Promise<boolean> {
    try {
      await this.#deps.redis.set(this.#key(id), JSON.stringify({ operator, endsAt }), 'PXAT', endsAt)
      return true
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'failed to store an operator session')
      return false
    }
  }

  #remember(id: string, session: Remembered): void {
    this.#remembered.set(this.#key(id), session)
  }

  /**
   * The hash depends on the operator token, so changing the token ends every session. Redis never
   * holds an id that opens a session.
   */
  #key(id: string): string {
    const digest = createHmac('sha256', this.#deps.operatorToken).update(`console session ${id}`).digest('base64url')
    return keys.consoleSession(digest)
  }
}

/** If a record comes from an earlier version, it is ignored and the operator logs in again. */
function readRecord(text: string | null): SessionRecord | undefined {
  if (text === null || !text.startsWith('{')) return undefined
  return JSON.parse(text) as SessionRecord
}

/** `Set-Cookie` that sets the session's cookie, or deletes it if the value is undefined. */
export function consoleCookie(value: string | undefined, isSecure: boolean): string {
  return writeSessionCookie({ name: COOKIE, value, lifeSeconds: SESSION_SECONDS, isSecure })
}
