import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { forgetAccount } from '../calls/cancel-account-calls.ts'
import type { OidcProvider } from '../config.ts'
import type { Context } from '../context.ts'
import type { User } from '../db/schema.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { takeForms } from '../http/request/form-body.ts'
import { requireOwnOrigin } from '../http/request/own-origin.ts'
import type { App } from '../http/request/typed-app.ts'
import { accountOfPerson, claimAnew, claimByPassword } from '../identity/account-of-person.ts'
import type { OidcSignIn, Person, SignInOptions } from '../identity/oidc-sign-in.ts'
import { ownPath } from '../identity/own-path.ts'
import { type PendingCookie, readPending, writePending } from '../identity/pending-cookie.ts'
import { openClaim, sealClaim } from '../identity/sealed-claim.ts'
import { startSession } from '../identity/start-session.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { layout, type Page } from '../portal/layout.ts'
import { claimPage, refreshTo, signedInPage } from '../portal/pages/sign-in.ts'
import { sessionCookie } from '../portal/session-cookie.ts'
import { publicNetworkOf, subscriberOf } from '../throttles/client-network.ts'
import { limitGuesses } from '../throttles/login-delay.ts'
import { makeThrottled, passwordThrottles } from '../throttles/throttle.ts'

/**
 * Units of a request that asks the provider and reads Postgres several times, although it may come
 * from anybody.
 */
const costly = { config: { anonymousUnits: 10 }, bodyLimit: CREDENTIALS_BYTES_MAX }

const Begin = Type.Object({ next: Type.Optional(Type.String({ maxLength: 2_000 })) })
const ClaimForm = Type.Object({
  claim: Type.String({ maxLength: 4_000 }),
  /** Absent: the account is replaced by a new account. */
  password: Type.Optional(Type.String({ maxLength: 100_000 })),
})

interface Deps {
  context: Context
  assets: Assets
  provider: OidcProvider
}

/** Sign-in of accounts at the OIDC provider, if OIDC_ACCOUNTS is on. */
export async function providerSignInRoutes(app: App, context: Context, assets: Assets): Promise<void> {
  const { oidc: provider } = context.config.accounts
  if (!provider) return
  const deps = { context, assets, provider }
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  takeForms(app)
  signInRoutes(app, deps)
  claimRoute(app, deps)
}

function signInRoutes(app: App, deps: Deps): void {
  const { context, provider } = deps
  const { baseUrl } = context.config.http
  const secrets = context.config.secrets.encryption
  const { clock } = context
  const pending: PendingCookie = { name: 'agw_sign_in', isSecure: baseUrl.startsWith('https:') }
  let opened: Promise<OidcSignIn> | undefined
  /** The library is loaded with the first sign-in. */
  const openSignIn = (): Promise<OidcSignIn> => {
    opened ??= openAccountSignIn(provider, { secrets, clock })
    return opened
  }
  app.addHook('onClose', async () => await (await opened)?.close())

  app.get('/login/oidc', { ...costly, schema: { hide: true, querystring: Begin } }, async (request, reply) => {
    const signIn = await openSignIn()
    const sought = { redirectUri: `${baseUrl}/login/callback`, next: ownPath(request.query.next ?? '/account') }
    const begun = await signIn.begin({ ...sought, cookie: readPending(request, pending) }).catch((cause: unknown) => {
      throw new GatewayError('DEPENDENCY_UNAVAILABLE', {
        message: `${provider.name} does not answer.`,
        hint: 'Try again, or log in with address and password',
        cause,
      })
    })
    return reply.header('set-cookie', writePending(pending, begun.cookie)).redirect(begun.url, 303)
  })

  // A HEAD request would use the code, and the browser's own request would then fail.
  const once = { ...costly, exposeHeadRoute: false, schema: { hide: true } }
  app.get('/login/callback', once, async (request, reply) => {
    const signIn = await openSignIn()
    const cookie = readPending(request as FastifyRequest, pending)
    const query = request.url.replace(/^[^?]*/, '')
    reply.header('set-cookie', writePending(pending, signIn.rest(query, cookie)))
    const { next, ...person } = await finish(context, request as FastifyRequest, () => signIn.finish(query, cookie))
    const { claim, user, isLinked } = await destinationOf(context, request as FastifyRequest, person)
    if (claim) {
      const sealed = sealClaim({ secrets, clock }, { claim, next })
      return sendSignInPage(deps, reply as FastifyReply, {
        main: claimPage({ ...claim, sealed, provider: provider.name }),
      })
    }
    if (isLinked) mailLinked(deps, user)
    return await enter(deps, reply as FastifyReply, { user, next })
  })
}

function openAccountSignIn(
  provider: OidcProvider,
  deps: Pick<SignInOptions, 'secrets' | 'clock'>,
): Promise<OidcSignIn> {
  const neededClaims = ['email', 'email_verified']
  return import('../identity/oidc-sign-in.ts').then(
    ({ OidcSignIn }) => new OidcSignIn({ ...deps, provider, neededClaims, purpose: 'account sign-in' }),
  )
}

/**
 * The form for a person who signed in, while an account with their address is not yet proven to be
 * theirs.
 */
function claimRoute(app: App, deps: Deps): void {
  const { context, provider } = deps
  const { config, db, clock } = context
  app.post('/login/claim', { ...costly, schema: { hide: true, body: ClaimForm } }, async (request, reply) => {
    requireOwnOrigin(request, config.http.baseUrl)
    const { password, claim: sealed } = request.body
    const { claim, next } = openClaim({ secrets: config.secrets.encryption, clock }, sealed)
    const claimed = async (): Promise<User> => {
      if (password === undefined) return await claimAnew(db, claim, publicNetworkOf(request.ip) ?? null)
      return await limitGuesses(context, { email: claim.email, address: request.ip }, () =>
        claimByPassword(db, claim, { password, client: subscriberOf(request.ip) }),
      )
    }
    try {
      const user = await withAnnouncement(context, [claim.userId], claimed)
      if (user.id !== claim.userId) await forgetAccount(context, claim.userId)
      mailLinked(deps, user)
      return await enter(deps, reply as FastifyReply, { user, next })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'INVALID_CREDENTIALS') throw error
      const main = claimPage({ ...claim, sealed, provider: provider.name, failure: error.message })
      return sendSignInPage(deps, reply.status(error.status) as FastifyReply, { main })
    }
  })
}

async function enter(
  deps: Deps,
  reply: FastifyReply,
  { user, next }: { user: User; next: string },
): Promise<FastifyReply> {
  const token = await startSession(deps.context, user)
  reply.header('set-cookie', sessionCookie(token, deps.context.config.http.baseUrl))
  return sendSignInPage(deps, reply, { main: signedInPage(next), head: refreshTo(next) })
}

function sendSignInPage(
  { assets, context }: Deps,
  reply: FastifyReply,
  parts: Pick<Page, 'main' | 'head'>,
): FastifyReply {
  const { signup } = context.config.accounts
  const words = { title: 'Sign in · Agent API Gateway', description: 'Sign in.', path: '/login', signup }
  return sendPage(reply, layout(assets, { ...words, ...parts, announcement: context.settings.notice?.text }))
}

/** Tells whoever reads the account's mail. The request does not wait for the mail server. */
function mailLinked({ context, provider: { name } }: Deps, { id, email }: User): void {
  const { mailer, config, log } = context
  const text = [
    `From now on a sign-in by ${name} leads to the account with this address at ${config.http.baseUrl}.`,
    'If it was you, do nothing. If it was not you, tell the operator of the gateway, who can disable the account.',
  ].join('\n\n')
  mailer
    ?.send({ to: email, subject: `Your account is linked with ${name}`, text })
    .catch((error: unknown) => log.warn({ err: error, accountId: id }, 'failed to mail that an account was linked'))
}

/**
 * A failed sign-in counts like a wrong password, because each costs a request to the provider.
 *
 * @throws GatewayError INVALID_CREDENTIALS; LOGIN_THROTTLED for a client with many failed sign-ins
 */
async function finish<T>(context: Context, request: FastifyRequest, attempt: () => Promise<T>): Promise<T> {
  const throttles = passwordThrottles(context.config, request.ip)
  return await makeThrottled(context, { throttles, counted: ['INVALID_CREDENTIALS'] }, async () => {
    try {
      return await attempt()
    } catch (cause) {
      request.log.warn({ err: cause }, 'sign-in of an account by the OIDC provider refused')
      throw new GatewayError('INVALID_CREDENTIALS', {
        message: 'The sign-in did not work.',
        hint: 'Start the sign-in again on the log-in page',
        cause,
      })
    }
  })
}

async function destinationOf(context: Context, { ip, log }: FastifyRequest, person: Person) {
  const { db, redis } = context
  const network = publicNetworkOf(ip) ?? null
  return await withAnnouncement({ redis, log }, [], async (accounts) => {
    const destination = await accountOfPerson(db, person, network)
    if (destination.isLinked) accounts.add(destination.user.id)
    return destination
  })
}
