import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { writeSessionCookie } from '../http/request/cookies.ts'
import type { Log } from '../log.ts'
import type { Operator } from '../operator/actor.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/** The cookie of the console. It carries a random session id and no secret of the service. */
export const COOKIE = 'agw_console'

/** How long a log-in lasts, seconds. */
const SESSION_SECONDS = 12 * 3_600

/**
 * Sessions that a process remembers for the time without Redis; sessions used longest ago are
 * forgotten first.
 */
const REMEMBERED_MAX = 1_000

/** Whether two texts are equal, in a time that tells nothing of where they differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'operator').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** What Redis has of a session: who it is, and when it ends, milliseconds since the epoch. */
interface SessionRecord {
  operator: Operator
  endsAt: number
}

interface Remembered extends SessionRecord {
  /** Redis has, or had, the session. If not, the session began while Redis was away. */
  isStored: boolean
}

interface SessionDeps {
  redis: RedisConnection
  operatorToken: string
  log: Log
}

/**
 * Log-ins of the console. Redis holds them, so that a log-out in one process ends the session in
 * all of them. While Redis does not answer, sessions that this process has seen go on (an operator
 * needs the console most then) and all others are refused.
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
    const endsAt = Date.now() + SESSION_SECONDS * 1_000
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
    const known = remembered && remembered.endsAt > Date.now() ? remembered : undefined
    try {
      const stored = readRecord(await this.#deps.redis.get(this.#key(id)))
      if (stored) {
        this.#remember(id, { ...stored, isStored: true })
        return stored.operator
      }
    } catch {
      return known?.operator
    }
    // It began while Redis was away: Redis learns of it now. A session that Redis had and has no
    // longer is over.
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
   * @throws what Redis throws: then only this process knows that it has ended
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
   * Keyed by the operator token: another token, and every session is over. Redis never holds an id
   * that opens anything.
   */
  #key(id: string): string {
    const digest = createHmac('sha256', this.#deps.operatorToken).update(`console session ${id}`).digest('base64url')
    return keys.consoleSession(digest)
  }
}

/** A record of a version before is of no use: whoever has it logs in again. */
function readRecord(text: string | null): SessionRecord | undefined {
  if (text === null || !text.startsWith('{')) return undefined
  const record = JSON.parse(text) as SessionRecord
  return record.endsAt > Date.now() ? record : undefined
}

/** `Set-Cookie` that begins a session, or ends it if the value is undefined. */
export function consoleCookie(value: string | undefined, isSecure: boolean): string {
  return writeSessionCookie({ name: COOKIE, value, lifeSeconds: SESSION_SECONDS, isSecure })
}
