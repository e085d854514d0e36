import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { verifySessionToken } from '../accounts/session-token.ts'
import type { Context } from '../context.ts'
import { findSessionUser } from '../db/sessions.ts'
import { GatewayError } from '../errors.ts'
import { type SharedRoute, shareRoutes } from '../http/request/any-origin.ts'
import { readBearer } from '../http/request/bearer.ts'
import type { App } from '../http/request/typed-app.ts'
import { type Replacement, requestForLibrary } from '../oauth/library-request.ts'
import { adaptSignIn, adaptTokenForm } from '../oauth/request-parameters.ts'
import {
  documentPaths,
  namedResource,
  RESOURCE_DOCUMENT,
  resourceMetadata,
  SERVER_DOCUMENTS,
} from '../oauth/resource-metadata.ts'
import type { Assets } from '../pages/assets.ts'
import { html } from '../pages/html.ts'
import { PAGE_POLICY } from '../pages/page-headers.ts'
import { layout } from '../portal/layout.ts'
import { isPortalRequest } from '../portal/session-cookie.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { DAY_MS, takeThrottles, throttlesOfClient } from '../throttles/throttle.ts'

/**
 * Applications that one client address may register, and documents that may be fetched for it.
 * Fails open.
 */
const REGISTRATIONS_PER_MINUTE = 20
const REGISTRATIONS_PER_DAY = 500
const DOCUMENTS_PER_MINUTE = 20

const Limit = Type.Integer({ minimum: 1, maximum: 1_000_000_000 })
const Decision = Type.Object({
  allow: Type.Boolean(),
  apis: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { minItems: 1, maxItems: 200 })),
  perMinute: Type.Optional(Limit),
  perMonth: Type.Optional(Limit),
  inFlight: Type.Optional(Limit),
  mayWrite: Type.Optional(Type.Boolean()),
})

/**
 * Longest address that begins a sign-in, bytes. It is stored for half an hour, even if nobody
 * finishes the sign-in.
 */
const SIGN_IN_URL_LENGTH_MAX = 4 * 1_024

const hidden = { schema: { hide: true } }
/** Units of a request that reads Postgres several times, although it may come from anybody. */
const COSTLY_UNITS = 10
const costly = { ...hidden, config: { anonymousUnits: COSTLY_UNITS } }

/**
 * Sign-in for applications (OAuth 2.1): metadata, the library's endpoints, and the routes of the
 * consent page.
 */
export async function oauthRoutes(app: App, context: Context, assets: Assets): Promise<void> {
  if (!context.config.accounts.isOauthOn) return
  let opened: Promise<Provider> | undefined
  const open = (): Promise<Provider> => {
    opened ??= openOAuth(context, assets)
    return opened
  }

  await app.register(async (scope) => passThrough(scope, context, open))
  await app.register(async (scope) => consentRoutes(scope, context, open))
}

type Provider = import('oidc-provider').Provider

/** The authorization server is loaded with its first request, because most nodes never need it. */
async function openOAuth(context: Context, assets: Assets): Promise<Provider> {
  const { createAuthorizationServer } = await import('../oauth/authorization-server.ts')
  const { openMetadataFetch } = await import('../oauth/metadata-fetch.ts')
  const documents = openMetadataFetch()
  return createAuthorizationServer({
    ...context,
    fetch: documents.fetch,
    beginFetch: async (url, address) => {
      const throttle = { name: 'client-document', max: DOCUMENTS_PER_MINUTE, code: 'REGISTRATION_THROTTLED' } as const
      try {
        await takeThrottles(context, throttlesOfClient(address, throttle))
        return documents.begin(url, subscriberOf(address))
      } catch (error) {
        context.log.debug({ err: error }, 'a document of an application is not fetched')
        return undefined
      }
    },
    errorPage: (title, text) =>
      layout(assets, {
        title: `${title} · Agent API Gateway`,
        description: title,
        path: '',
        signup: context.config.accounts.signup,
        announcement: context.settings.notice?.text,
        main: html`<div class="wrap narrow"><h1>${title}</h1><p class="notice">${text}</p><p>Start the sign-in again in the application.</p></div>`,
      }),
  })
}

/** Passes requests to the library, in the form that it accepts. */
async function passThrough(app: App, context: Context, open: () => Promise<Provider>): Promise<void> {
  const { baseUrl } = context.config.http
  app.removeAllContentTypeParsers()
  // The library reads and checks bodies itself. Here they are counted while they arrive, with or
  // without a stated length.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => body)

  const pass = passTo(context, open)
  const passBody = (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    pass(request, reply, Buffer.isBuffer(request.body) ? { body: request.body } : {})
  const passTokenForm = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const isForm = /^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? '')
    if (!isForm || !Buffer.isBuffer(request.body)) return await passBody(request, reply)
    const form = adaptTokenForm(new URLSearchParams(request.body.toString()), baseUrl)
    return await pass(request, reply, { body: Buffer.from(String(form)) })
  }
  const register = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const code = 'REGISTRATION_THROTTLED' as const
    const minute = { name: 'client-register', max: REGISTRATIONS_PER_MINUTE, code } as const
    const day = { name: 'client-register-day', max: REGISTRATIONS_PER_DAY, windowMs: DAY_MS, code } as const
    const throttles = [minute, day].flatMap((throttle) => throttlesOfClient(request.ip, throttle))
    await takeThrottles(context, throttles)
    return await passBody(request, reply)
  }
  const begin = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (request.url.length > SIGN_IN_URL_LENGTH_MAX)
      throw new GatewayError('URI_TOO_LONG', { hint: 'Send a shorter state' })
    // Removes cookies that an earlier sign-in in the same browser left.
    delete request.raw.headers.cookie
    const [path = '', query = ''] = request.url.split(/[?](.*)/s)
    return await pass(request, reply, { url: `${path}?${adaptSignIn(new URLSearchParams(query), baseUrl)}` })
  }
  app.get('/oauth/authorize', costly, begin)
  // This route ends the sign-in, so a HEAD request would use up the browser's code.
  app.get('/oauth/authorize/:uid', { ...costly, exposeHeadRoute: false }, (request, reply) => pass(request, reply))
  // Addresses that applications in browsers call. Browsers themselves open only the addresses
  // above.
  shareRoutes(app, [
    ...documentRoutes(context, pass),
    { method: 'GET', path: '/oauth/jwks', handler: (request, reply) => pass(request, reply) },
    { method: 'POST', path: '/oauth/register', anonymousUnits: COSTLY_UNITS, handler: register },
    { method: 'POST', path: '/oauth/token', anonymousUnits: COSTLY_UNITS, handler: passTokenForm },
    { method: 'POST', path: '/oauth/revoke', anonymousUnits: COSTLY_UNITS, handler: passBody },
  ])
}

type Pass = (request: FastifyRequest, reply: FastifyReply, given?: Replacement) => Promise<FastifyReply>

function passTo(context: Context, open: () => Promise<Provider>): Pass {
  const { baseUrl } = context.config.http
  return async (request, reply, given = {}) => {
    if (context.isDraining) throw new GatewayError('DRAINING')
    const provider = await open()
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value)
    // The policy of the library's error pages.
    reply.raw.setHeader('content-security-policy', PAGE_POLICY)
    reply.raw.setHeader('x-content-type-options', 'nosniff')
    reply.raw.setHeader('referrer-policy', 'no-referrer')
    reply.hijack()
    await provider.callback()(requestForLibrary(request, baseUrl, given), reply.raw)
    return reply
  }
}

/** The documents that describe the authorization server and its resources. */
function documentRoutes(context: Context, pass: Pass): SharedRoute[] {
  const describeServer = (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    namedResource(context, request)
    return pass(request, reply, { url: `/.well-known/${SERVER_DOCUMENTS[0]}` })
  }
  const describeResource = async (request: FastifyRequest, reply: FastifyReply): Promise<object> => {
    const { address, resource } = namedResource(context, request)
    reply.header('cache-control', 'public, max-age=300')
    return resourceMetadata(context, { address, resource })
  }
  return [
    ...SERVER_DOCUMENTS.flatMap(documentPaths).map(
      (path) => ({ method: 'GET', path, handler: describeServer }) as const,
    ),
    ...documentPaths(RESOURCE_DOCUMENT).map((path) => ({ method: 'GET', path, handler: describeResource }) as const),
  ]
}

/**
 * The routes of the consent page. They serve only pages of this portal, whose header no other
 * origin can send.
 */
async function consentRoutes(app: App, context: Context, open: () => Promise<Provider>): Promise<void> {
  const { config, db, clock } = context
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    if (!isPortalRequest(request, config.http.baseUrl)) {
      throw new GatewayError('FORBIDDEN', {
        message: 'Only the consent page may send this request.',
        hint: 'Open the sign-in page in a browser',
      })
    }
  })
  const exchangeOf = (request: Pick<FastifyRequest, 'raw'>, reply: FastifyReply) => ({
    raw: { request: request.raw, response: reply.raw },
  })

  app.get('/connect/:uid/details', hidden, async (request, reply) => {
    const provider = await open()
    const { readConsent } = await import('../oauth/consent.ts')
    return await readConsent({ ...context, provider }, exchangeOf(request, reply))
  })

  const deciding = { schema: { hide: true, body: Decision } }
  app.post('/connect/:uid/decision', deciding, async (request, reply) => {
    const token = readBearer(request.headers)
    if (token === undefined) throw new GatewayError('AUTH_REQUIRED')
    const { userId, sessionId } = await verifySessionToken(config.secrets.jwt, token, clock.now())
    const user = await findSessionUser(db, userId, sessionId)
    if (!user) throw new GatewayError('INVALID_TOKEN')
    const provider = await open()
    const { decideConsent } = await import('../oauth/consent.ts')
    const decided = { userId: user.id, decision: request.body }
    return { location: await decideConsent({ ...context, provider }, exchangeOf(request, reply), decided) }
  })
}
