import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { verifyAddressProof } from '../accounts/address-proof.ts'
import { mailFailureOf } from '../accounts/mailer.ts'
import { missingForLiveCalls } from '../accounts/trust.ts'
import { mailVerification } from '../accounts/verification-mail.ts'
import { nullable } from '../catalog/json.ts'
import type { Context } from '../context.ts'
import { verifyEmail } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { takeForms } from '../http/request/form-body.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import type { Assets } from '../pages/assets.ts'
import type { Html } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { layout } from '../portal/layout.ts'
import { addressIsVerifiedPage, verifyPage } from '../portal/pages/verification.ts'
import { readSessionCookie } from '../portal/session-cookie.ts'
import { takeMailUnits } from '../throttles/mail-limit.ts'
import { HOUR_MS, MINUTE_MS } from '../throttles/throttle.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const VerificationStatus = Type.Object(
  {
    emailVerified: Type.Boolean({ description: 'Whether your email address is verified' }),
    liveCallsNeed: nullable(
      Type.Enum(['verification', 'approval'], {
        description:
          'Why the gateway refuses live calls: until you verify your email address, or until an operator approves the account; null: it accepts them',
      }),
    ),
  },
  { title: 'VerificationStatus' },
)

const TokenBody = Type.Object(
  { token: Type.String({ maxLength: 2_000, description: 'Token of the link in the mail' }) },
  OPEN_BODY,
)

/** Proof of an account's address: the link is mailed, and a person opens and confirms it. */
export async function verificationRoutes(app: App, context: Context, assets: Assets): Promise<void> {
  await app.register(async (scope) => statusAndMailRoutes(scope, context))
  await app.register(async (scope) => pageRoutes(scope, context, assets))

  const verify = {
    bodyLimit: CREDENTIALS_BYTES_MAX,
    config: { errors: ['INVALID_TOKEN'] as const },
    schema: {
      operationId: 'verifyAddress',
      summary: 'Verify an email address with the token of the mailed link',
      tags: ['Accounts'],
      body: TokenBody,
      response: { 204: NoContent },
    },
  }
  app.post('/v1/auth/verify', verify, async (request, reply) => {
    await prove(context, request.body.token)
    return reply.status(204).send()
  })
}

function statusAndMailRoutes(app: App, context: Context): void {
  guardWithSession(app, context)
  const status = {
    schema: {
      operationId: 'readVerification',
      summary: 'Whether your email address is verified, and what live calls wait for',
      tags: ['Accounts'],
      response: { 200: VerificationStatus },
    },
  }
  app.get('/v1/auth/verification', status, async (request) => {
    const { user } = sessionOf(request)
    const liveCallsNeed = missingForLiveCalls(user, context.config.accounts.signup) ?? null
    return { emailVerified: user.email_verified_at !== null, liveCallsNeed }
  })
  const options = {
    config: { errors: ['FORBIDDEN', 'RATE_LIMIT_EXCEEDED', 'DEPENDENCY_UNAVAILABLE'] as const },
    schema: {
      operationId: 'mailVerification',
      summary: 'Have the link that verifies your email address mailed again',
      tags: ['Accounts'],
      response: { 204: NoContent },
    },
  }
  app.post('/v1/auth/verification', options, async (request, reply) => {
    const { user } = sessionOf(request)
    const { mailer } = context
    // If live calls wait for nothing else, the message does not mention the operator.
    const isNeeded = missingForLiveCalls(user, context.config.accounts.signup) !== undefined
    if (!mailer) {
      const hint = isNeeded
        ? 'Ask the operator to approve the account'
        : 'Use the account as it is, because nothing needs a verified email address'
      throw new GatewayError('FORBIDDEN', { message: 'This gateway sends no mail.', hint })
    }
    const refund = await takeMailUnits(context, user.id)
    await mailVerification({ ...context, mailer }, user).catch((cause: unknown) => {
      const failure = mailFailureOf(cause)
      // If the mail server refuses the recipient for good, the mail still counts, so that nobody
      // tries without end.
      if (failure !== 'recipient') refund()
      throw failure === undefined ? cause : notMailed(failure, { cause, isNeeded })
    })
    return reply.status(204).send()
  })
}

const NOT_MAILED = {
  recipient: 'The mail server refuses mail to your address.',
  refused: 'The mail server did not accept the mail.',
  unreachable: 'The mail server does not answer.',
}

function notMailed(
  failure: keyof typeof NOT_MAILED,
  { cause, isNeeded }: { cause: unknown; isNeeded: boolean },
): GatewayError {
  const isForGood = failure === 'recipient'
  const advice = isForGood ? 'Sign up with an address that receives mail' : 'Try again in a minute'
  return new GatewayError('DEPENDENCY_UNAVAILABLE', {
    message: NOT_MAILED[failure],
    hint: isNeeded ? `${advice}, or ask the operator to approve the account` : advice,
    retryAfterMs: isForGood ? HOUR_MS : MINUTE_MS,
    cause,
  })
}

/**
 * The link opens a page whose button proves the address, because some programs open every link of a
 * mail.
 */
function pageRoutes(app: App, context: Context, assets: Assets): void {
  takeForms(app)
  const { http, accounts } = context.config
  const answer = (request: Pick<FastifyRequest, 'headers'>, reply: FastifyReply, main: Html): FastifyReply => {
    const page = layout(assets, {
      title: 'Verify your email address · Agent API Gateway',
      description: 'Verify that the email address of an account is yours.',
      path: '/verify',
      main,
      signup: accounts.signup,
      announcement: context.settings.notice?.text,
      isLoggedIn: readSessionCookie(request, http.baseUrl) !== undefined,
    })
    return sendPage(reply, page)
  }
  const schema = {
    hide: true,
    querystring: Type.Object({
      token: Type.String({ maxLength: 2_000, description: 'Token of the link in the mail' }),
    }),
  }
  app.get('/verify', { schema }, async (request, reply) => {
    return answer(request, reply, verifyPage(request.query.token))
  })
  app.post(
    '/verify',
    { bodyLimit: CREDENTIALS_BYTES_MAX, schema: { hide: true, body: TokenBody } },
    async (request, reply) => {
      await prove(context, request.body.token)
      return answer(request, reply, addressIsVerifiedPage())
    },
  )
}

/** @throws GatewayError INVALID_TOKEN */
async function prove({ config, db, redis, log, clock }: Context, token: string): Promise<void> {
  const { userId, email } = await verifyAddressProof(config.secrets.jwt, token, clock.now())
  // The account has another address by now, which the link does not prove.
  const isProven = await withAnnouncement({ redis, log }, [userId], () => verifyEmail(db, userId, email))
  if (!isProven) throw new GatewayError('INVALID_TOKEN')
}
