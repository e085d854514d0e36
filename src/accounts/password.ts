import { availableParallelism } from 'node:os'
import { argon2id, type HashOptions, hash, needsRehash, verify } from 'argon2'
import { GatewayError } from '../errors.ts'

/** argon2id, 19 MiB, 3 passes (RFC 9106; OWASP's floor). */
const OPTIONS = { type: argon2id, memoryCost: 19_456, timeCost: 3, parallelism: 1 } satisfies HashOptions

/**
 * Hashes under way at once in this process, each of which takes a core and 19 MiB: one core stays
 * for calls.
 */
const HASHES_MAX = Math.max(1, availableParallelism() - 1)

/**
 * Hashes that may wait for a slot, about two seconds of work; past it the caller gets
 * LOGIN_THROTTLED.
 */
const WAITING_MAX = 100

/** Of them, the hashes of one client. */
const WAITING_OF_CLIENT_MAX = 30

const CODE_POINTS_MIN = 8
const CODE_POINTS_MAX = 256

/**
 * A hash of a password nobody has: compared against when the address is unknown, so that both take
 * the same time.
 */
let decoy: Promise<string> | undefined

/**
 * One form of texts that look the same, whatever keyboard wrote them: every space is a space, and
 * accents are in their letters (RFC 8265, 4.2.2; NIST SP 800-63B, 3.1.1.2).
 */
const normalised = (password: string): string => password.replace(/\p{Zs}/gu, ' ').normalize('NFC')

/** Whether a text may be a password: 8 to 256 code points, any of them. */
export function isAcceptablePassword(password: string): boolean {
  // A code point has at most four in another form, of two units each.
  const length = [...normalised(password.slice(0, 8 * CODE_POINTS_MAX + 1))].length
  return length >= CODE_POINTS_MIN && length <= CODE_POINTS_MAX
}

/**
 * `client` is counted as in throttles; slots go round robin over clients.
 *
 * @throws GatewayError LOGIN_THROTTLED if too many wait already
 */
export function hashPassword(password: string, client = ''): Promise<string> {
  return withHashSlot(client, () => hash(normalised(password), OPTIONS))
}

/**
 * Compares a password with the hash of an account, or with a decoy when there is no account or no
 * password.
 *
 * @throws GatewayError LOGIN_THROTTLED if too many wait already
 */
export async function isPasswordOf(
  passwordHash: string | null | undefined,
  password: string,
  client = '',
): Promise<boolean> {
  decoy ??= hash('no account has this password', OPTIONS)
  const against = passwordHash ?? (await decoy)
  const isOf = (form: string): Promise<boolean> => withHashSlot(client, () => verify(against, form))
  const form = normalised(password)
  // Hashes of earlier versions are of the raw text.
  const matches = (await isOf(form)) || (form !== password && (await isOf(password)))
  return matches && typeof passwordHash === 'string'
}

/** Refuses what takes a password for an account whose person signs in at the provider alone. */
export function noPassword(member: string): GatewayError {
  return new GatewayError('INVALID_CREDENTIALS', {
    message: 'The account has no password.',
    hint: 'Have a link mailed that sets a password (Forgot your password?), or ask the operator of this gateway for the link',
    tokens: { param: member },
  })
}

/**
 * Whether a hash was made with other costs than today's and is to be made again at the next log-in.
 */
export function isOutdatedHash(passwordHash: string): boolean {
  return !passwordHash.startsWith('$argon2id$') || needsRehash(passwordHash, OPTIONS)
}

/**
 * Whether a hash that matches a password is of its raw text, so that its other forms would be
 * refused.
 */
export async function isHashOfRawText(passwordHash: string, password: string, client = ''): Promise<boolean> {
  const form = normalised(password)
  return form !== password && !(await isPasswordOf(passwordHash, form, client))
}

let running = 0
let waitingCount = 0

/** What waits, by client, in the order in which the clients are served. */
const waiting = new Map<string, (() => void)[]>()

async function withHashSlot<T>(client: string, work: () => Promise<T>): Promise<T> {
  if (running >= HASHES_MAX) await waitForSlot(client)
  else running += 1
  try {
    return await work()
  } finally {
    const next = dequeueNext()
    if (next) next()
    else running -= 1
  }
}

async function waitForSlot(client: string): Promise<void> {
  const ofClient = waiting.get(client) ?? []
  if (waitingCount >= WAITING_MAX || ofClient.length >= WAITING_OF_CLIENT_MAX) {
    // A sign-up and a change of the password wait here too.
    throw new GatewayError('LOGIN_THROTTLED', {
      message: 'Too many passwords are being checked at the moment.',
      hint: 'Wait and send the request again',
      retryAfterMs: 2_000,
    })
  }
  waitingCount += 1
  waiting.set(client, ofClient)
  await new Promise<void>((start) => ofClient.push(start))
}

/**
 * One of each client in turn: a log-in waits behind others' clients, not behind all that these have
 * sent.
 */
function dequeueNext(): (() => void) | undefined {
  for (const [client, ofClient] of waiting) {
    const start = ofClient.shift()
    waiting.delete(client)
    if (ofClient.length > 0) waiting.set(client, ofClient)
    waitingCount -= 1
    return start
  }
  return undefined
}
