import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { FleetReader } from '../fleet/fleet-reader.ts'
import { sendError } from '../http/answer/error-answer.ts'
import { unread } from '../http/answer/unread-stream.ts'
import { closeBodies } from '../http/request/closed-bodies.ts'
import { decodable } from '../http/request/decodable.ts'
import { acceptIdsInAnyCase } from '../http/request/ids-in-any-case.ts'
import { parseJsonBody } from '../http/request/json-body.ts'
import { compileSchemasOnUse } from '../http/request/lazy-schemas.ts'
import type { App } from '../http/request/typed-app.ts'
import { collectMethods, refuseUnrouted } from '../http/server/method-not-allowed.ts'
import { checkHead, noteRequest, refuseConnection, takeExpectations } from '../http/server/refuse-connection.ts'
import { trustProxies } from '../http/server/trusted-proxies.ts'
import { loadAssets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { createId } from '../queue/call-job.ts'
import { accountRoutes } from './account-routes.ts'
import { auditPageRoutes } from './audit-page.ts'
import { BOOK_PAGES, bookPage } from './book-page.ts'
import { callRoutes } from './call-routes.ts'
import { isForPerson, sendFailure } from './failure-page.ts'
import { metricsRoute } from './fleet-metrics.ts'
import { loginRoutes } from './login-routes.ts'
import { oidcRoutes } from './oidc-routes.ts'
import { guardOperator } from './operator-guard.ts'
import { noticeFormRoute } from './operator-notice.ts'
import { OperatorSessions } from './operator-session.ts'
import { overviewRoutes } from './overview-routes.ts'
import { queueRoutes } from './queue-routes.ts'
import { trustedHeaderReader } from './trusted-header.ts'

/** Longest time for the header of a request, and for the whole request, milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000

/** Routes of this port are never in the documents of the public port. */
const NO_ROUTE = { hint: 'See operator --help for what operators can do' }

/** A plugin with routes of the operator's JSON API. It is registered behind the guard. */
export type OperatorRoutes = (scope: App, context: Context & { fleet: FleetReader }) => Promise<void>

/**
 * Builds the operator console; it does not listen yet. Everything except the log-in needs the
 * operator token, a session, or the headers of the access proxy.
 */
export async function createConsole(context: Context, operatorRoutes: OperatorRoutes[]): Promise<FastifyInstance> {
  const { config, log } = context
  const { baseUrl } = config.http
  const app = openServer(context)
  takeStrictJson(app)
  await compileSchemasOnUse(app)
  closeBodies(app)
  const allowedMethods = collectMethods(app)
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, baseUrl))
  const { redis, clock } = context
  const sessions = new OperatorSessions({ redis, clock, operatorToken: config.secrets.operatorToken, log })
  const assets = loadAssets(['console/browser/', 'fleet/words.js', 'docs/pictures/what-fails.svg'])
  const guard = {
    ...{ config, sessions, redis: context.redis, db: context.db, clock: context.clock, log },
    ...{ readTrustedHeader: trustedHeaderReader(config), assets },
  }
  const fleet = new FleetReader(context)
  await app.register(async (scope) => {
    await loginRoutes(scope.withTypeProvider<TypeBoxTypeProvider>(), guard)
    await oidcRoutes(scope.withTypeProvider<TypeBoxTypeProvider>(), guard)
  })
  await app.register(async (scope) => {
    guardOperator(scope, guard)
    acceptIdsInAnyCase(scope.withTypeProvider<TypeBoxTypeProvider>())
    // This is behind the guard, so that nobody without a session learns which routes exist.
    scope.addHook('onRequest', async (request) => {
      if (request.is404) refuseUnrouted(request, allowedMethods, NO_ROUTE)
    })
    scope.setErrorHandler((error, request, reply) =>
      isForPerson(request) ? sendFailure(reply, error, assets) : sendError(reply, error, baseUrl),
    )
    // The scope needs its own 404 handler. Without it, the scope's hooks would not run for unknown
    // routes.
    scope.setNotFoundHandler(() => {
      throw new GatewayError('NOT_FOUND', NO_ROUTE)
    })
    await overviewRoutes(scope, { log, fleet, sessions, assets, settings: context.settings })
    await scope.register(
      async (inner) => await callRoutes(inner.withTypeProvider<TypeBoxTypeProvider>(), { ...context, assets }),
    )
    await scope.register(
      async (inner) => await accountRoutes(inner.withTypeProvider<TypeBoxTypeProvider>(), { ...context, assets }),
    )
    await scope.register(async (inner) => await noticeFormRoute(inner.withTypeProvider<TypeBoxTypeProvider>(), context))
    await queueRoutes(scope.withTypeProvider<TypeBoxTypeProvider>(), { fleet, assets })
    await scope.register(
      async (inner) => await auditPageRoutes(inner.withTypeProvider<TypeBoxTypeProvider>(), { db: context.db, assets }),
    )
    scope.get('/runbooks', async (_request, reply) => sendPage(reply, bookPage(assets, 'runbooks')))
    scope.get('/book', async (_request, reply) => sendPage(reply, bookPage(assets)))
    for (const page of BOOK_PAGES) {
      scope.get(`/book/${page}`, async (_request, reply) => sendPage(reply, bookPage(assets, page)))
    }
    await metricsRoute(scope, context, fleet)
    for (const routes of operatorRoutes)
      await scope.register(
        async (inner) => await routes(inner.withTypeProvider<TypeBoxTypeProvider>(), { ...context, fleet }),
      )
  })
  return app
}

/** The server without routes. Refusals by Node and Fastify have the form of all refusals. */
function openServer({ config, log }: Context): FastifyInstance {
  const { baseUrl } = config.http
  const app = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => createId('req'),
    requestIdHeader: false,
    trustProxy: trustProxies(config.http.trustProxy),
    bodyLimit: 64 * 1024,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: { headersTimeout: HEADERS_TIMEOUT_MS, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    forceCloseConnections: true,
    rewriteUrl: ({ url = '/' }) => decodable(url),
    // If a part of an address is too long, no hook runs.
    frameworkErrors: (error, request, reply) =>
      void sendError(reply.header('x-request-id', request.id), error, baseUrl),
    clientErrorHandler: (error, socket) => refuseConnection(error, socket as Socket, baseUrl),
  })
  takeExpectations(app.server)
  // Without this listener Node would close the connection without an answer. From now on nobody
  // else reads the connection.
  app.server.on('connect', ({ socket }) => {
    const refusal = Object.assign(new Error('CONNECT is for proxies'), { code: 'CONNECT' })
    refuseConnection(refusal, socket.on('error', () => undefined).resume(), baseUrl)
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    noteRequest(request, reply)
    checkHead(request)
  })
  app.addHook('onSend', async ({ method }, _reply, payload) => (method === 'HEAD' ? unread(payload) : payload))
  return app
}

function takeStrictJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) =>
    body.length === 0 ? undefined : parseJsonBody(body),
  )
}
