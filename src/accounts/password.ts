import { availableParallelism } from 'node:os'
import { argon2id, type HashOptions, hash, needsRehash, verify } from 'argon2'
import { GatewayError } from '../errors.ts'

/** argon2id, 19 MiB, 3 passes (RFC 9106; OWASP's floor). */
const OPTIONS = { type: argon2id, memoryCost: 19_456, timeCost: 3, parallelism: 1 } satisfies HashOptions

/**
 * Most password hashes that run at once in this process. Each takes a core and 19 MiB. One core
 * stays free for calls.
 */
const HASHES_MAX = Math.max(1, availableParallelism() - 1)

/**
 * Most hashes that wait for a slot, about two seconds of work. Beyond this number the caller gets
 * LOGIN_THROTTLED.
 */
const WAITING_MAX = 100

/** Most hashes of one client that wait. */
const WAITING_OF_CLIENT_MAX = 30

const CODE_POINTS_MIN = 8
const CODE_POINTS_MAX = 256

/**
 * The hash of a password that nobody has. If an address is unknown, the password is compared with
 * it, so that known and unknown addresses take the same time.
 */
let decoy: Promise<string> | undefined

/**
 * One form for texts that look the same, whatever keyboard wrote them: every kind of space becomes
 * a plain space, and accents are composed with their letters (RFC 8265, 4.2.2; NIST SP 800-63B,
 * 3.1.1.2).
 */
const normalised = (password: string): string => password.replace(/\p{Zs}/gu, ' ').normalize('NFC')

/**
 * Whether a text may be a password: it has 8 to 256 code points, and no code point is forbidden.
 */
export function isAcceptablePassword(password: string): boolean {
  // In another normal form a code point has at most four code points, of two UTF-16 units each.
  const length = [...normalised(password.slice(0, 8 * CODE_POINTS_MAX + 1))].length
  return length >= CODE_POINTS_MIN && length <= CODE_POINTS_MAX
}

/**
 * Hashes a new password. `client` is named as in the throttles; slots go round robin over the
 * clients.
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
  // Earlier versions hashed the raw text.
  const matches = (await isOf(form)) || (form !== password && (await isOf(password)))
  return matches && typeof passwordHash === 'string'
}

/**
 * The refusal of a request that needs a password, if the account has none because its person signs
 * in at the provider.
 */
export function noPassword(member: string): GatewayError {
  return new GatewayError('INVALID_CREDENTIALS', {
    message: 'The account has no password.',
    hint: 'Choose "Forgot your password?" on the log-in page to get a link that sets a password, or ask the operator of this gateway for the link',
    tokens: { param: member },
  })
}

/**
 * Whether a hash was made with other costs than today's. The next log-in then hashes the password
 * again.
 */
export function isOutdatedHash(passwordHash: string): boolean {
  return !passwordHash.startsWith('$argon2id$') || needsRehash(passwordHash, OPTIONS)
}

/**
 * Whether a hash that matches a password was made from its raw text. Such a hash would refuse other
 * forms of the same password.
 */
export async function isHashOfRawText(passwordHash: string, password: string, client = ''): Promise<boolean> {
  const form = normalised(password)
  return form !== password && !(await isPasswordOf(passwordHash, form, client))
}

let running = 0
let waitingCount = 0

/** Hashes that wait, by client, in the order in which the clients get slots. */
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
    // A sign-up and a change of the password wait here too, so the message does not speak of a
    // log-in.
    throw new GatewayError('LOGIN_THROTTLED', {
      message: 'The gateway is checking too many passwords at the moment.',
      hint: 'Wait and send the request again',
      retryAfterMs: 2_000,
    })
  }
  waitingCount += 1
  waiting.set(client, ofClient)
  await new Promise<void>((start) => ofClient.push(start))
}

/**
 * Takes one waiting hash of each client in turn. A log-in then waits behind at most one hash of
 * each other client, not behind everything that they have sent.
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
