import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { mailFailureOf } from '../accounts/mailer.ts'
import { isAcceptablePassword } from '../accounts/password.ts'
import { createResetLink, RESET_LINK_MINUTES, resetByLink } from '../accounts/reset-link.ts'
import type { Context } from '../context.ts'
import { findUserByEmail } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { takeForms } from '../http/request/form-body.ts'
import { requireOwnOrigin } from '../http/request/own-origin.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import type { Assets } from '../pages/assets.ts'
import type { Html } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { layout } from '../portal/layout.ts'
import { forgotPage, linkOnItsWayPage, passwordIsSetPage, resetPage } from '../portal/pages/reset.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { forgetGuesses } from '../throttles/login-delay.ts'
import { takeMailUnits } from '../throttles/mail-limit.ts'
import { HOUR_MS, takeThrottles, throttlesOfClient } from '../throttles/throttle.ts'

/**
 * Links that one client may request per hour, over all addresses. Each account also has a limit
 * of its own, see `takeMailUnits`.
 */
const RESETS_PER_HOUR = 20

/**
 * Mails with links that a node sends at once. While the mail server hangs, further mails are
 * dropped with a warning.
 */
const MAILS_AT_ONCE_MAX = 50

const EmailBody = Type.Object(
  { email: Type.String({ maxLength: 1_000, description: 'Email address of the account' }) },
  OPEN_BODY,
)
const Token = Type.String({ maxLength: 200, description: 'Token of the link in the mail' })
const PasswordForm = Type.Object({ token: Token, newPassword: Type.String({ maxLength: 1_000 }) }, OPEN_BODY)

/** A lost password: mails a link to a new password, and serves the form that uses the link. */
export async function resetRoutes(app: App, context: Context, assets: Assets): Promise<void> {
  const links = new LinkMails(context)
  const options = {
    bodyLimit: CREDENTIALS_BYTES_MAX,
    config: { errors: ['FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const },
    schema: {
      operationId: 'mailResetLink',
      summary: 'Have a link mailed that sets a new password',
      description:
        `The answer is the same whether or not an account has the address. The link is valid for ${RESET_LINK_MINUTES} minutes and ` +
        'works once. An account gets at most three mails an hour. Setting the password ends all sessions; keys and connected applications stay valid.',
      tags: ['Accounts'],
      body: EmailBody,
      response: { 204: NoContent },
    },
  }
  app.post('/v1/auth/reset', options, async (request, reply) => {
    await links.request(request.body.email, request.ip)
    return reply.status(204).send()
  })
  await app.register(async (scope) => pageRoutes(scope, { context, assets, links }))
}

interface PageDeps {
  context: Context
  assets: Assets
  links: LinkMails
}

function pageRoutes(app: App, { context, assets, links }: PageDeps): void {
  takeForms(app)
  const { baseUrl } = context.config.http
  const answer = (reply: FastifyReply, main: Html): FastifyReply => {
    const words = { title: 'New password · Agent API Gateway', description: 'Set a new password.', path: '/reset' }
    const { signup } = context.config.accounts
    reply.header('cache-control', 'no-store')
    return sendPage(reply, layout(assets, { ...words, main, signup, announcement: context.settings.notice?.text }))
  }
  const hidden = { bodyLimit: CREDENTIALS_BYTES_MAX }
  app.get('/forgot', { schema: { hide: true } }, async (_request, reply) => {
    links.requireMailer()
    return answer(reply, forgotPage())
  })
  app.post('/forgot', { ...hidden, schema: { hide: true, body: EmailBody } }, async (request, reply) => {
    requireOwnOrigin(request, baseUrl)
    await links.request(request.body.email, request.ip)
    return answer(reply, linkOnItsWayPage(RESET_LINK_MINUTES))
  })
  const linked = { schema: { hide: true, querystring: Type.Object({ token: Token }) } }
  // Programs that open every link of a mail do not use the link up. Only the form does.
  app.get('/reset', linked, async (request, reply) => answer(reply, resetPage(request.query.token)))
  app.post('/reset', { ...hidden, schema: { hide: true, body: PasswordForm } }, async (request, reply) => {
    const { token, newPassword } = request.body
    if (!isAcceptablePassword(newPassword))
      return answer(reply.status(400), resetPage(token, 'The password must have 8 to 256 characters.'))
    await setPassword(context, { token, password: newPassword, address: request.ip })
    return answer(reply, passwordIsSetPage())
  })
}

/** @throws GatewayError INVALID_TOKEN */
async function setPassword(
  context: Context,
  { token, password, address }: { token: string; password: string; address: string },
): Promise<void> {
  const { db, redis, log } = context
  const user = await withAnnouncement({ redis, log }, [], (accounts) =>
    resetByLink(db, { token, password, client: subscriberOf(address) }, accounts),
  )
  await forgetGuesses(context, { email: user.email, address })
}

/**
 * Sends links in the background, so that neither the text nor the time of an answer reveals whether
 * the account exists.
 */
class LinkMails {
  readonly #context: Context
  #underWay = 0

  constructor(context: Context) {
    this.#context = context
  }

  /** @throws GatewayError FORBIDDEN if this gateway cannot send mail */
  requireMailer(): NonNullable<Context['mailer']> {
    const { mailer } = this.#context
    if (mailer) return mailer
    throw new GatewayError('FORBIDDEN', {
      message: 'This gateway sends no mail.',
      hint: 'Ask the operator of this gateway for a link that sets a new password',
    })
  }

  /** @throws GatewayError FORBIDDEN; RATE_LIMIT_EXCEEDED for a client that requests many links */
  async request(email: string, address: string): Promise<void> {
    const mailer = this.requireMailer()
    const { log, config } = this.#context
    const throttles = throttlesOfClient(address, {
      name: 'reset',
      max: config.throttles.loginFailuresPerMinute === 0 ? 0 : RESETS_PER_HOUR,
      windowMs: HOUR_MS,
      code: 'RATE_LIMIT_EXCEEDED',
      hint: 'Use the link of a mail that has arrived, or wait',
    })
    await takeThrottles(this.#context, throttles)
    if (this.#underWay >= MAILS_AT_ONCE_MAX) {
      log.warn('dropped a link to a new password: too many mails wait for the mail server')
      return
    }
    this.#underWay += 1
    this.#send(mailer, email)
      .catch((error) => log.warn({ err: error }, 'failed to mail a link to a new password'))
      .finally(() => {
        this.#underWay -= 1
      })
  }

  async #send(mailer: NonNullable<Context['mailer']>, email: string): Promise<void> {
    const { config, db, strangersDb } = this.#context
    const user = await findUserByEmail(strangersDb, email)
    if (!user || user.disabled_at) return
    const refund = await takeMailUnits(this.#context, user.id).catch((error: unknown) => {
      // The account has already received its mails of this hour.
      if (error instanceof GatewayError && error.code === 'RATE_LIMIT_EXCEEDED') return undefined
      throw error
    })
    if (!refund) return
    const { baseUrl } = config.http
    try {
      const link = await createResetLink(db, { userId: user.id, provesAddress: true }, baseUrl)
      await mailer.send({
        to: user.email,
        subject: 'Set a new password',
        text: [
          `Somebody requested a new password for the account with this address at ${baseUrl}.`,
          `If it was you, open this link within ${RESET_LINK_MINUTES} minutes:`,
          link,
          'If it was not you, do nothing: the password stays as it is.',
        ].join('\n\n'),
      })
    } catch (error) {
      if (mailFailureOf(error) !== 'recipient') refund()
      throw error
    }
  }
}
