import type { IncomingMessage } from 'node:http'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from './context.ts'
import { GatewayError } from './errors.ts'
import { unread } from './http/answer/unread-stream.ts'
import { shareAnswer } from './http/request/any-origin.ts'
import { decodable } from './http/request/decodable.ts'
import { allowOrigins } from './http/server/cross-origin.ts'
import { checkHeld, holdAnswer } from './http/server/holding.ts'
import { collectMethods, refuseUnrouted } from './http/server/method-not-allowed.ts'
import type { Redirect } from './http/server/redirect-to-https.ts'
import { checkHead, noteRequest, URL_LENGTH_MAX } from './http/server/refuse-connection.ts'
import type { IsProxy } from './http/server/trusted-proxies.ts'
import { challengeFor, mcpAddress, originForm } from './oauth/resources.ts'
import { acceptPortalSession } from './portal/session-cookie.ts'
import { ClientLimits } from './throttles/client-limits.ts'

/** An address of a call without any character that could change its path when it is normalised. */
const PLAIN_CALL = /^\/v1\/call\/[\w/-]+(?:\?|$)/

/**
 * The address as the router sees it. A call without an API counts as a call too, and is refused in
 * the order of a call's checks.
 */
export function routedUrl({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  if (PLAIN_CALL.test(url)) return url
  const path = decodable(originForm(url))
  return mcpAddress(path) ?? path.replace(/^\/v1\/call(?=\?|$)/, '/v1/call/')
}

/**
 * Requests have no loggers of their own, because these cost more than they tell. Failures are
 * logged with the request's id.
 */
export function sameLogger(logger: FastifyBaseLogger): FastifyBaseLogger {
  return logger
}

/** Refusals that come before the route and the body are looked at. */
export function hookRequests(
  app: FastifyInstance,
  { config }: Context,
  { isProxy, redirect }: { isProxy: IsProxy; redirect: Redirect | undefined },
): void {
  const { baseUrl } = config.http
  const clients = new ClientLimits({ ...config.http.clients, isProxy })
  clients.countConnections(app.server)
  const allowedMethods = collectMethods(app)
  const allowOrigin = allowOrigins(config.http.corsOrigins)
  /** @returns whether the request is a preflight: its answer needs no route. */
  const check = (request: FastifyRequest, reply: FastifyReply): boolean => {
    shareAnswer(request, reply)
    const isPreflight = allowOrigin?.(request, reply) === true
    checkHead(request)
    forgetEmptyCredentials(request.raw)
    clients.checkConnection(request)
    // Programs send no cookies.
    if (request.headers.cookie !== undefined) acceptPortalSession(request, baseUrl)
    if (isAnonymous(request)) clients.takeAnonymous(request)
    if (isPreflight) return true
    checkHeld(request)
    if (request.url.length > URL_LENGTH_MAX) throw new GatewayError('URI_TOO_LONG')
    // Checked before the body is read. If the route does not exist, errors of the body do not
    // matter.
    if (request.is404) refuseUnrouted(request, allowedMethods)
    return false
  }
  // With a callback, because a promise for each request costs more than the checks.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    noteRequest(request, reply)
    if (redirect?.(request, reply)) return
    try {
      if (check(request, reply)) return void reply.status(204).send()
    } catch (error) {
      return done(error as Error)
    }
    done()
  })
}

/** A header without a value counts as absent, because scripts send it if a variable is not set. */
function forgetEmptyCredentials({ headers }: Pick<IncomingMessage, 'headers'>): void {
  for (const name of ['x-api-key', 'authorization'])
    if (/^[\s,]*$/.test(String(headers[name] ?? 'none'))) delete headers[name]
}

/** Whether a request has no account, because its route needs no credential or it has none. */
function isAnonymous({ headers, routeOptions }: FastifyRequest): boolean {
  const { guard, isProbe } = routeOptions.config
  if (isProbe) return false
  return guard === undefined || (headers.authorization === undefined && headers['x-api-key'] === undefined)
}

interface AnswerDeps extends Pick<Context, 'isDraining'> {
  config: {
    accounts: Pick<Context['config']['accounts'], 'isOauthOn'>
    http: Pick<Context['config']['http'], 'baseUrl'>
  }
}

/** Sets the headers of every answer, and counts the bytes of each answer until it is written. */
export function hookAnswers(app: FastifyInstance, context: AnswerDeps): void {
  const { accounts, http } = context.config
  // `Connection` is set with the answer and not with the request, because a call that was running
  // before the node began to close would otherwise keep its connection.
  // biome-ignore lint/complexity/useMaxParams: the form of Fastify's hooks.
  app.addHook('onSend', (request, reply, answer, done) => {
    const payload = request.method === 'HEAD' ? unread(answer) : answer
    holdAnswer(request.raw, reply.raw, payload)
    if (context.isDraining) reply.header('connection', 'close')
    if (reply.statusCode === 401 && accounts.isOauthOn) {
      const challenge = String(reply.getHeader('www-authenticate') ?? 'Bearer')
      reply.header('www-authenticate', challengeFor(request, challenge, http.baseUrl))
    }
    done(null, payload)
  })
}
