import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { verifySessionToken } from '../accounts/session-token.ts'
import type { Context } from '../context.ts'
import { findSessionUser } from '../db/sessions.ts'
import { GatewayError } from '../errors.ts'
import type { Assets } from '../http/assets.ts'
import { readBearer } from '../http/bearer.ts'
import { html } from '../http/html.ts'
import { PAGE_POLICY } from '../http/page-headers.ts'
import { SlugParams } from '../http/path-ids.ts'
import type { App } from '../http/typed-app.ts'
import { clientOf, takeThrottle } from '../limits/throttle.ts'
import { CALL_SCOPE } from '../oauth/resources.ts'
import { layout } from '../portal/layout.ts'
import { isPortalRequest } from '../portal/session-cookie.ts'

/** Applications that one client address may register, and documents that are fetched for it. Fails open. */
const REGISTRATIONS_PER_MINUTE = 20
const REGISTRATIONS_PER_DAY = 500
const DOCUMENTS_PER_MINUTE = 20

/** Largest registration, bytes: it is kept for a week whatever becomes of it. */
const REGISTRATION_BYTES_MAX = 16 * 1_024

const Decision = Type.Object({
  allow: Type.Boolean(),
  apis: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { minItems: 1, maxItems: 200 })),
  perMonth: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })),
})

/** Longest address that begins a sign-in, bytes: it is kept for half an hour whatever becomes of it. */
const SIGN_IN_URL_LENGTH_MAX = 4 * 1_024

const hidden = { schema: { hide: true } }
/** Each costs several looks into Postgres, for whoever asks. */
const costly = { ...hidden, config: { anonymousUnits: 10 } }

/** Sign-in for applications (OAuth 2.1): metadata, the library's endpoints, and what the consent page asks. */
export async function oauthRoutes(app: App, context: Context, assets: Assets): Promise<void> {
  if (!context.config.accounts.isOauthOn) return
  const { baseUrl } = context.config.http
  let opened: Promise<Provider> | undefined
  const open = (): Promise<Provider> => {
    opened ??= openOAuth(context, assets)
    return opened
  }

  const describe = (path: string, name: string) => ({
    resource: `${baseUrl}${path}`,
    authorization_servers: [baseUrl],
    scopes_supported: [CALL_SCOPE, 'offline_access'],
    bearer_methods_supported: ['header'],
    resource_name: name,
    resource_documentation: `${baseUrl}/agents`,
  })
  const metadata = (reply: FastifyReply, body: object) =>
    reply.header('access-control-allow-origin', '*').header('cache-control', 'public, max-age=300').send(body)
  const wellKnown = '/.well-known/oauth-protected-resource'
  app.get(wellKnown, hidden, async (_request, reply) => metadata(reply, describe('', 'Agent API Gateway')))
  app.get(`${wellKnown}/mcp`, hidden, async (_request, reply) =>
    metadata(reply, describe('/mcp', 'Agent API Gateway (MCP)')),
  )
  app.get(`${wellKnown}/mcp/:slug`, { schema: { hide: true, params: SlugParams } }, async (request, reply) => {
    const api = context.catalog.get(request.params.slug)
    if (!api) throw new GatewayError('API_NOT_FOUND')
    return metadata(reply, describe(`/mcp/${api.slug}`, `${api.upstream.displayName} (MCP)`))
  })

  await app.register(async (scope) => passThrough(scope, context, open))
  await app.register(async (scope) => consentRoutes(scope, context, open))
}

type Provider = import('oidc-provider').Provider

/** The authorization server is loaded with its first request: most nodes of most gateways never need it. */
async function openOAuth(context: Context, assets: Assets): Promise<Provider> {
  const { createAuthorizationServer } = await import('../oauth/authorization-server.ts')
  const { openMetadataFetch } = await import('../oauth/metadata-fetch.ts')
  const documents = openMetadataFetch()
  return createAuthorizationServer({
    ...context,
    fetch: documents.fetch,
    beginFetch: async (url, address) => {
      const client = clientOf(address)
      const throttle = { name: 'client-document', max: DOCUMENTS_PER_MINUTE, code: 'REGISTRATION_THROTTLED' } as const
      try {
        await takeThrottle(context, { ...throttle, subject: client })
        return documents.begin(url, client)
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
        main: html`<div class="wrap narrow"><h1>${title}</h1><p class="notice">${text}</p><p>Start again in the application.</p></div>`,
      }),
  })
}

/** Hands requests to the library as they come: it reads and checks bodies itself. */
async function passThrough(app: App, context: Context, open: () => Promise<Provider>): Promise<void> {
  const base = new URL(context.config.http.baseUrl)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))

  const pass = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (context.isDraining) throw new GatewayError('DRAINING')
    const provider = await open()
    // Whatever host a request names, every address in an answer is made from BASE_URL.
    Object.assign(request.raw.headers, {
      host: base.host,
      'x-forwarded-host': base.host,
      'x-forwarded-proto': base.protocol.slice(0, -1),
      'x-forwarded-for': request.ip,
    })
    const { headers } = request.raw
    delete headers.forwarded
    // A charset has no effect on any type that these routes take; the library would decode the body by it.
    headers['content-type'] = headers['content-type']?.split(';')[0]
    // A sign-in begins without what an earlier one in the same browser left.
    if (request.url.startsWith('/oauth/authorize?')) delete headers.cookie
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value)
    // For the pages that tell of errors.
    reply.raw.setHeader('content-security-policy', PAGE_POLICY)
    reply.raw.setHeader('x-content-type-options', 'nosniff')
    reply.raw.setHeader('referrer-policy', 'no-referrer')
    reply.hijack()
    await provider.callback()(request.raw, reply.raw)
    return reply
  }
  const authorize = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (request.url.length > SIGN_IN_URL_LENGTH_MAX)
      throw new GatewayError('URI_TOO_LONG', { hint: 'Send a shorter state' })
    return await pass(request, reply)
  }
  const register = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const length = request.headers['content-length']
    if (length === undefined) {
      throw new GatewayError('VALIDATION_ERROR', { message: 'The registration needs Content-Length.' })
    }
    if (Number(length) > REGISTRATION_BYTES_MAX)
      throw new GatewayError('PAYLOAD_TOO_LARGE', { hint: 'Send at most 16 KiB' })
    const throttle = { subject: clientOf(request.ip), code: 'REGISTRATION_THROTTLED' } as const
    await takeThrottle(context, { ...throttle, name: 'client-register', max: REGISTRATIONS_PER_MINUTE })
    const day = { name: 'client-register-day', max: REGISTRATIONS_PER_DAY, windowMs: 86_400_000 } as const
    await takeThrottle(context, { ...throttle, ...day })
    return await pass(request, reply)
  }
  for (const path of ['/oauth/authorize', '/oauth/authorize/:uid']) app.get(path, costly, authorize)
  for (const path of ['/oauth/jwks', '/.well-known/oauth-authorization-server']) app.get(path, hidden, pass)
  app.post('/oauth/register', costly, register)
  for (const path of ['/oauth/token', '/oauth/revoke']) {
    app.post(path, costly, pass)
    app.options(path, hidden, pass)
  }
}

/** What the consent page asks; for pages of this portal alone, which bear a header that no other origin can send. */
async function consentRoutes(app: App, context: Context, open: () => Promise<Provider>): Promise<void> {
  const { config, db, health } = context
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    if (!isPortalRequest(request, config.http.baseUrl)) {
      throw new GatewayError('FORBIDDEN', {
        message: 'Only the consent page may ask this.',
        hint: 'Open the address of the sign-in in a browser',
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
    const { userId, sessionId } = await verifySessionToken(config.secrets.jwt, token, health.now())
    const user = await findSessionUser(db, userId, sessionId)
    if (!user) throw new GatewayError('INVALID_TOKEN')
    const provider = await open()
    const { decideConsent } = await import('../oauth/consent.ts')
    const decided = { userId: user.id, decision: request.body }
    return { location: await decideConsent({ ...context, provider }, exchangeOf(request, reply), decided) }
  })
}
