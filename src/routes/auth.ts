import { randomUUID } from 'node:crypto'
import Type from 'typebox'
import {
  hashPassword,
  isAcceptablePassword,
  isHashOfRawText,
  isOutdatedHash,
  isPasswordOf,
} from '../accounts/password.ts'
import { mailVerification } from '../accounts/verification-mail.ts'
import type { Context } from '../context.ts'
import { asciiEmail } from '../db/email-address.ts'
import { sqlState, UNIQUE_VIOLATION } from '../db/postgres-errors.ts'
import { findUser, findUserByEmail, insertUser, updatePasswordHash } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { requireOwnOrigin } from '../http/request/own-origin.ts'
import type { App } from '../http/request/typed-app.ts'
import { SESSIONS_MAX, startSession } from '../identity/start-session.ts'
import { publicNetworkOf, subscriberOf } from '../throttles/client-network.ts'
import { limitGuesses } from '../throttles/login-delay.ts'
import { limitSignups, type SignupClient } from '../throttles/signup-limits.ts'
import { accountThrottle, checkThrottle, takeThrottle } from '../throttles/throttle.ts'

const SESSION_WORDS = `Session token (JWT), valid for 24 hours, or less if ${SESSIONS_MAX} newer sessions are started`

const SignupBody = Type.Object(
  {
    email: Type.String({ format: 'email', maxLength: 254, description: 'Email address of the new account' }),
    password: Type.String({
      minLength: 8,
      maxLength: 256,
      description: '8 to 256 characters; any characters are allowed',
    }),
  },
  OPEN_BODY,
)
const SignupAnswer = Type.Object({
  token: Type.String({ description: SESSION_WORDS }),
  user: Type.Object(
    {
      id: Type.String({ format: 'uuid', description: 'Id of the account' }),
      email: Type.String({ description: 'Email address of the account' }),
    },
    { description: 'The new account' },
  ),
})

/**
 * The schema of a log-in is wider than the schema of sign-up, so that an impossible address or
 * password is answered as wrong and not as malformed.
 */
const LoginBody = Type.Object(
  {
    email: Type.String({ maxLength: 1_000, description: 'Email address of the account' }),
    password: Type.String({ maxLength: 100_000, description: 'Password of the account' }),
  },
  OPEN_BODY,
)
const LoginAnswer = Type.Object({ token: Type.String({ description: SESSION_WORDS }) })

/** Sign-up and log-in. */
export async function authRoutes(app: App, context: Context): Promise<void> {
  const { config } = context
  // The request has no credential yet, so a page whose name points to this host (DNS rebinding)
  // could otherwise make an account.
  app.addHook('onRequest', async (request) => requireOwnOrigin(request, config.http.baseUrl))

  const signup = {
    // Checked before the body is read, because a corrected body would not help.
    onRequest: async () => {
      if (config.accounts.signup === 'closed') throw closed()
    },
    bodyLimit: CREDENTIALS_BYTES_MAX,
    config: { errors: ['EMAIL_IN_USE', 'FORBIDDEN', 'SIGNUP_THROTTLED', 'LOGIN_THROTTLED'] as const },
    schema: {
      summary: 'Sign up',
      tags: ['Accounts'],
      body: SignupBody,
      response: { 201: SignupAnswer },
    },
  }
  app.post('/v1/auth/signup', signup, async (request, reply) => {
    const { email, password } = request.body
    if (!isAcceptablePassword(password)) throw unacceptablePassword('password')
    const client = { address: request.ip, network: publicNetworkOf(request.ip) ?? null }
    const user = { id: randomUUID(), email: asciiEmail(email) }
    const passwordHash = await limitSignups(context, client, () =>
      createUser(context, { ...user, password, ...client }),
    )
    const { mailer } = context
    if (mailer) {
      // The request does not wait for the mail server. The link can be sent again.
      mailVerification({ ...context, mailer }, user).catch((error) => {
        request.log.warn({ err: error, accountId: user.id }, 'failed to mail the link that verifies an address')
      })
    }
    const token = await startSession(context, { id: user.id, password_hash: passwordHash })
    return reply.status(201).header('cache-control', 'no-store').send({ token, user })
  })

  const login = {
    bodyLimit: CREDENTIALS_BYTES_MAX,
    config: { errors: ['INVALID_CREDENTIALS', 'FORBIDDEN', 'LOGIN_THROTTLED'] as const },
    schema: {
      summary: 'Log in',
      tags: ['Accounts'],
      body: LoginBody,
      response: { 200: LoginAnswer },
    },
  }
  app.post('/v1/auth/login', login, async (request, reply) => {
    const { email, password } = request.body
    const attempt = () => logIn(context, { email, password, client: subscriberOf(request.ip) })
    const token = await limitGuesses(context, { email, address: request.ip }, attempt)
    return reply.header('cache-control', 'no-store').send({ token })
  })
}

/**
 * @returns the hash of the password
 * @throws GatewayError EMAIL_IN_USE
 */
async function createUser(
  { db }: Context,
  { id, email, password, address, network }: { id: string; email: string; password: string } & SignupClient,
): Promise<string> {
  // The password is hashed whether or not the address is taken, so that both answers take the same
  // time.
  const passwordHash = await hashPassword(password, subscriberOf(address))
  try {
    await insertUser(db, { id, email, passwordHash, signupNetwork: network })
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION)
      throw new GatewayError('EMAIL_IN_USE', { tokens: { param: 'email' }, cause: error })
    throw error
  }
  return passwordHash
}

function closed(): GatewayError {
  return new GatewayError('FORBIDDEN', {
    message: 'Sign-up is closed.',
    hint: 'Ask the operator of this gateway to open it',
  })
}

/**
 * The subject of the throttle for an address without an account. It is checked too, so that known
 * and unknown addresses take the same time.
 */
const NOBODY = 'nobody'

/**
 * @throws GatewayError INVALID_CREDENTIALS; LOGIN_THROTTLED after many successful log-ins to the
 *   account
 */
async function logIn(
  context: Context,
  { email, password, client }: { email: string; password: string; client: string },
): Promise<string> {
  const { db } = context
  const user = await findUserByEmail(db, email)
  const throttle = accountThrottle('login-account', context.config, user?.id ?? NOBODY)
  await checkThrottle(context, throttle)
  const matches = await isPasswordOf(user?.password_hash, password, client)
  if (!user?.password_hash || !matches || user.disabled_at) throw new GatewayError('INVALID_CREDENTIALS')
  await takeThrottle(context, throttle)
  const isCurrent =
    !isOutdatedHash(user.password_hash) && !(await isHashOfRawText(user.password_hash, password, client))
  if (isCurrent) return await startSession(context, user)
  const passwordHash = await hashPassword(password, client)
  // A concurrent log-in may have replaced the hash already.
  const isUpdated = await updatePasswordHash(db, user, passwordHash)
  const current = isUpdated ? passwordHash : (await findUser(db, user.id))?.password_hash
  if (current !== passwordHash && !(await isPasswordOf(current, password, client)))
    throw new GatewayError('INVALID_CREDENTIALS')
  return await startSession(context, { id: user.id, password_hash: current ?? '' })
}

/**
 * The refusal of a password that is too short or too long. The length counts code points, as people
 * count characters.
 */
function unacceptablePassword(member: string): GatewayError {
  return new GatewayError('VALIDATION_ERROR', {
    message: `Member ${member} must have 8 to 256 characters.`,
    tokens: { param: member },
  })
}
