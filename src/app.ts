import type { ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Context } from './context.ts'
import { GatewayError } from './errors.ts'
import { sendError } from './http/answer/error-answer.ts'
import { BODY_BYTES_MAX } from './http/request/body-limits.ts'
import { closeBodies } from './http/request/closed-bodies.ts'
import { readJsonBody } from './http/request/json-body.ts'
import { compileSchemasOnUse } from './http/request/lazy-schemas.ts'
import { removeOptionalNulls } from './http/request/optional-nulls.ts'
import type { App } from './http/request/typed-app.ts'
import { readCertificate } from './http/server/certificate.ts'
import { readForwarded } from './http/server/forwarded.ts'
import { HeldBytes } from './http/server/held-bytes.ts'
import { boundPipelining } from './http/server/pipeline.ts'
import { redirectToHttps } from './http/server/redirect-to-https.ts'
import { refuseConnection, takeExpectations, URL_LENGTH_MAX } from './http/server/refuse-connection.ts'
import { trustProxies } from './http/server/trusted-proxies.ts'
import { collectRoutes, type DocumentedRoute } from './openapi/route-list.ts'
import { type Assets, loadAssets } from './pages/assets.ts'
import { isForPeople, sendProblem } from './portal/problem.ts'
import { createId } from './queue/call-job.ts'
import { hookAnswers, hookRequests, routedUrl, sameLogger } from './request-hooks.ts'
import { asyncCallRoutes } from './routes/async-calls.ts'
import { authRoutes } from './routes/auth.ts'
import { batchRoutes } from './routes/batch.ts'
import { billingRoutes } from './routes/billing.ts'
import { callRoutes } from './routes/call.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { clientRoutes } from './routes/clients.ts'
import { connectionRoutes } from './routes/connections.ts'
import { docsRoutes } from './routes/docs.ts'
import { docsPageRoutes } from './routes/docs-pages.ts'
import { docsSearchRoutes } from './routes/docs-search.ts'
import { exportRoutes } from './routes/export.ts'
import { healthRoutes } from './routes/health.ts'
import { keyChangeRoutes } from './routes/key-changes.ts'
import { keyRoutes } from './routes/keys.ts'
import { logRoutes } from './routes/logs.ts'
import { mcpRoutes } from './routes/mcp.ts'
import { noticeRoutes } from './routes/notices.ts'
import { oauthRoutes } from './routes/oauth.ts'
import { openApiRoutes } from './routes/openapi.ts'
import { portalRoutes } from './routes/portal.ts'
import { portalAssetRoutes } from './routes/portal-assets.ts'
import { portalSessionRoutes } from './routes/portal-session.ts'
import { profileRoutes } from './routes/profile.ts'
import { providerKeyRoutes } from './routes/provider-keys.ts'
import { providerSignInRoutes } from './routes/provider-sign-in.ts'
import { resetRoutes } from './routes/reset.ts'
import { sessionRoutes } from './routes/session.ts'
import { teamMemberRoutes } from './routes/team-members.ts'
import { teamOwnershipRoutes } from './routes/team-ownership.ts'
import { teamRoutes } from './routes/teams.ts'
import { usageRoutes } from './routes/usage.ts'
import { verificationRoutes } from './routes/verification.ts'
import { wellKnownRoutes } from './routes/well-known.ts'

const HEADER_BYTES_MAX = 16 * 1024

/** Longest time for the header of a request, and for the whole request, milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000

/**
 * How long an answer may stay unread after the longest wait for an answer, milliseconds. This node
 * keeps it until then.
 */
const UNREAD_MS_MAX = 35_000

const SERVER_OPTIONS: ServerOptions = {
  maxHeaderSize: HEADER_BYTES_MAX,
  headersTimeout: HEADERS_TIMEOUT_MS,
  // How often Node looks for requests that take too long. Node's default is 30 s.
  connectionsCheckingInterval: 1_000,
  // We check it ourselves, so that the refusal has our form.
  requireHostHeader: false,
}

/** Builds the HTTP server of an API node; it does not listen yet. */
export async function createApp(context: Context): Promise<FastifyInstance> {
  const { config, log } = context
  const { baseUrl, tls } = config.http
  const isProxy = trustProxies(config.http.trustProxy)
  const redirect = redirectToHttps({ baseUrl, isProxy })
  const app = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    // A call's line is written where the call is answered, without its query string.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: sameLogger,
    genReqId: () => createId('req'),
    requestIdHeader: false,
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: config.callTimeoutMs + UNREAD_MS_MAX,
    keepAliveTimeout: 65_000,
    return503OnClosing: false,
    // The limit is the same as for a whole address, so that a longer id is refused for its length,
    // and a malformed id as not found.
    routerOptions: { maxParamLength: URL_LENGTH_MAX },
    rewriteUrl: routedUrl,
    http: SERVER_OPTIONS,
    ...(tls ? { https: { ...readCertificate(tls), ...SERVER_OPTIONS } } : {}),
    // If a part of an address is too long, no hook runs.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
      if (!redirect?.(request, reply)) sendError(reply, error, baseUrl)
    },
    clientErrorHandler: (error, socket) => refuseConnection(error, socket as Socket, baseUrl),
  })
  readForwarded(app, isProxy)
  takeExpectations(app.server)
  const held = new HeldBytes()
  boundPipelining(app.server, held, isProxy)
  sweepHeld(app, held)
  await compileSchemasOnUse(app)
  closeBodies(app)
  const listRoutes = collectRoutes(app)
  takeOnlyJson(app)
  hookRequests(app, context, { isProxy, redirect })
  hookAnswers(app, context)
  const assets = loadAssets(['portal/assets/'])
  // People get a page, programs get JSON.
  const refuse = (request: FastifyRequest, reply: FastifyReply, thrown: unknown): FastifyReply =>
    isForPeople(request)
      ? sendProblem(reply, thrown, {
          ...{ assets, catalog: context.catalog, baseUrl, signup: config.accounts.signup },
          announcement: context.settings.notice?.text,
        })
      : sendError(reply, thrown, baseUrl)
  app.setErrorHandler((error, request, reply) => refuse(request, reply, error))
  app.setNotFoundHandler((request, reply) => refuse(request, reply, new GatewayError('NOT_FOUND')))

  await registerRoutes(app, context, { assets, listRoutes })
  return app
}

/** How often the unread bytes of connections are measured, milliseconds. */
const SWEEP_MS = 1_000

function sweepHeld(app: FastifyInstance, held: HeldBytes): void {
  let timer: NodeJS.Timeout | undefined
  app.addHook('onListen', async () => {
    timer = setInterval(() => {
      const closed = held.sweep()
      if (closed > 0)
        app.log.warn({ closed, bytes: held.total }, 'closed connections of clients that did not read their answers')
    }, SWEEP_MS).unref()
  })
  app.addHook('onClose', async () => clearInterval(timer))
}

/** Each file of routes has its own scope, so that a guard applies only to its routes. */
async function registerRoutes(
  app: FastifyInstance,
  context: Context,
  { assets, listRoutes }: { assets: Assets; listRoutes: () => DocumentedRoute[] },
): Promise<void> {
  const routes = [
    healthRoutes,
    authRoutes,
    profileRoutes,
    exportRoutes,
    noticeRoutes,
    keyRoutes,
    keyChangeRoutes,
    catalogRoutes,
    callRoutes,
    mcpRoutes,
    portalSessionRoutes,
    sessionRoutes,
    teamRoutes,
    teamMemberRoutes,
    teamOwnershipRoutes,
    providerKeyRoutes,
    billingRoutes,
    usageRoutes,
    logRoutes,
    asyncCallRoutes,
    batchRoutes,
    connectionRoutes,
    clientRoutes,
    wellKnownRoutes,
  ]
  for (const route of routes) await inScope(app, (scope) => route(scope, context))
  await inScope(app, (scope) => openApiRoutes(scope, context, listRoutes))
  await inScope(app, (scope) => docsPageRoutes(scope, context, { assets, listRoutes }))
  await inScope(app, (scope) => docsSearchRoutes(scope, context, { assets, listRoutes }))
  const pages = [docsRoutes, portalRoutes, portalAssetRoutes, oauthRoutes, verificationRoutes, resetRoutes]
  for (const route of [...pages, providerSignInRoutes]) await inScope(app, (scope) => route(scope, context, assets))
}

/** The name must be set. Without it, Fastify would search all loaded modules for the function. */
const DISPLAY_NAME = Symbol.for('fastify.display-name')

async function inScope(app: FastifyInstance, register: (scope: App) => void | Promise<void>): Promise<void> {
  const inOwnScope = async (scope: FastifyInstance): Promise<void> => {
    await register(scope.withTypeProvider<TypeBoxTypeProvider>())
  }
  await app.register(Object.assign(inOwnScope, { [DISPLAY_NAME]: 'routes' }))
}

/**
 * Bodies are JSON and parsed strictly. An empty body counts as no body, whatever its content type.
 */
function takeOnlyJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    if (body.length > 0) {
      const value = readJsonBody(request.headers, body)
      // In a PATCH, null means removal (RFC 7396), so nulls stay even if a schema does not allow
      // them.
      if (request.method !== 'PATCH') removeOptionalNulls(request.routeOptions.schema?.body, value)
      return value
    }
    const { required = [] } = (request.routeOptions.schema?.body ?? {}) as { required?: string[] }
    if (required.length > 0) throw new GatewayError('INVALID_JSON')
    return undefined
  })
}
