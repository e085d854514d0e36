import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { requireOwnOrigin } from '../http/request/own-origin.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { isPortalRequest, sessionCookie } from '../portal/session-cookie.ts'

const Credentials = Type.Object({
  email: Type.String({ maxLength: 1_000 }),
  password: Type.String({ maxLength: 100_000 }),
})

/**
 * The portal's log-in. It is the normal log-in, but the token goes into a cookie and never to a
 * script.
 */
export async function portalSessionRoutes(app: App, { config }: Context): Promise<void> {
  const { baseUrl } = config.http
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireOwnOrigin(request, baseUrl)
    if (!isPortalRequest(request, baseUrl)) {
      throw new GatewayError('FORBIDDEN', {
        message: 'Only pages of the portal may send this request.',
        hint: 'Use POST /v1/auth/login',
      })
    }
  })

  const options = {
    bodyLimit: CREDENTIALS_BYTES_MAX,
    schema: { hide: true, body: Credentials, response: { 204: NoContent } },
  }
  for (const action of ['signup', 'login'] as const) {
    app.post(
      `/portal/${action}`,
      options,
      async (request: FastifyRequest<{ Body: Static<typeof Credentials> }>, reply: FastifyReply) => {
        const { email, password } = request.body
        const answer = await app.inject({
          method: 'POST',
          url: `/v1/auth/${action}`,
          payload: { email, password },
          remoteAddress: request.ip,
        })
        if (answer.statusCode >= 400) return relay(reply, answer)
        return reply.status(204).header('set-cookie', sessionCookie(answer.json().token, baseUrl)).send()
      },
    )
  }

  const leave = { schema: { hide: true, response: { 204: NoContent } } }
  app.post('/portal/logout', leave, async (request: FastifyRequest, reply: FastifyReply) => {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const answer = await app.inject({
        method: 'POST',
        url: '/v1/auth/logout',
        headers: { authorization },
        remoteAddress: request.ip,
      })
      // The cookie is deleted in any case. If the session could not be ended, it expires by itself.
      if (answer.statusCode >= 429) request.log.warn({ status: answer.statusCode }, 'failed to end a session')
    }
    return reply.status(204).header('set-cookie', sessionCookie(undefined, baseUrl)).send()
  })
}

/** A refusal of the real route, unchanged. */
function relay(
  reply: FastifyReply,
  answer: { statusCode: number; headers: Record<string, unknown>; body: string },
): FastifyReply {
  const retryAfter = answer.headers['retry-after']
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return reply.status(answer.statusCode).type('application/json; charset=utf-8').send(answer.body)
}
