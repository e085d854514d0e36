import { hash, type Options, verify } from '@node-rs/argon2'
import { GatewayError } from '../errors.ts'

/** argon2id, 19 MiB, 3 passes (RFC 9106; OWASP's floor). */
const OPTIONS: Options = { algorithm: 2, memoryCost: 19_456, timeCost: 3, parallelism: 1 }

/** Hashes under way at once in this process: each takes a core and 19 MiB. */
const HASHES_MAX = 2

/** Hashes that may wait for a turn, about two seconds of work; past it the caller is told to come again. */
const WAITING_MAX = 100

const CODE_POINTS_MIN = 8
const CODE_POINTS_MAX = 256

/** A hash of a password nobody has: compared against when the address is unknown, so that both take the same time. */
let decoy: Promise<string> | undefined

/** Whether a text may be a password: 8 to 256 code points, any of them. */
export function isAcceptablePassword(password: string): boolean {
  const length = [...password.slice(0, 2 * CODE_POINTS_MAX + 1)].length
  return length >= CODE_POINTS_MIN && length <= CODE_POINTS_MAX
}

/**
 * @throws GatewayError LOGIN_THROTTLED when too many wait already
 */
export function hashPassword(password: string): Promise<string> {
  return inTurn(() => hash(password, OPTIONS))
}

/**
 * Compares a password with the hash of an account, or with a decoy when there is no account.
 *
 * @throws GatewayError LOGIN_THROTTLED when too many wait already
 */
export async function isPasswordOf(passwordHash: string | undefined, password: string): Promise<boolean> {
  decoy ??= hash('no account has this password', OPTIONS)
  const against = passwordHash ?? (await decoy)
  const matches = await inTurn(() => verify(against, password))
  return matches && passwordHash !== undefined
}

/** Whether a hash was made with other costs than today's and is to be made again at the next log-in. */
export function isOutdatedHash(passwordHash: string): boolean {
  return !passwordHash.startsWith(
    `$argon2id$v=19$m=${OPTIONS.memoryCost},t=${OPTIONS.timeCost},p=${OPTIONS.parallelism}$`,
  )
}

let running = 0
const waiting: (() => void)[] = []

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= HASHES_MAX) {
    if (waiting.length >= WAITING_MAX) throw new GatewayError('LOGIN_THROTTLED', { retryAfterMs: 2_000 })
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else {
    running += 1
  }
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }
}
