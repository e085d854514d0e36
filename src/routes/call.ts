import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Admitted, admitCall, identifyCaller, type Refused } from '../admission/admit.ts'
import { waitsForOperator } from '../admission/check-call.ts'
import { endRefusedCall } from '../admission/end-refused-calls.ts'
import { rateLimitHeaders } from '../admission/rate-limit-headers.ts'
import { requestSubject } from '../admission/rights.ts'
import { endCall } from '../calls/end-call.ts'
import { awaitCall } from '../calls/pending-call.ts'
import type { Context } from '../context.ts'
import { toGatewayError } from '../errors.ts'
import {
  mediaTypeOf,
  PRIVATE_ANSWER,
  replyError,
  replyHeaders,
  sourceLink,
  termsLink,
  timingWithoutReply,
} from '../http/answer/call-answer.ts'
import { bringsBody, CALL_BYTES_MAX, unitsOfBody } from '../http/request/body-limits.ts'
import { callerSocket, originOf } from '../http/request/caller-socket.ts'
import { afterRefund } from '../limits/limit-state.ts'
import { METHODS } from '../node-http.ts'
import { refundOf } from '../queue/verdict.ts'
import { addressedTarget, type CallArrival, noteArrival, recordCall } from '../telemetry/record-call.ts'

const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
/**
 * Methods that a call refuses without reading a body: every method that Node reads, except CONNECT,
 * which names no route.
 */
const WITHOUT_BODY = METHODS.filter((method) => !['CONNECT', 'GET', 'HEAD', ...WITH_BODY].includes(method))

/** Request headers that affect the answer. */
const VARY = 'accept, authorization, origin, prefer, x-api-key, x-gateway-mode, x-gateway-response, x-gateway-scenario'

const ANSWER_HEADERS = { ...PRIVATE_ANSWER, vary: VARY }

/**
 * The form that Fastify accepts as a media type. Fastify would refuse any other `content-type`
 * before the gateway has checked the credential, so the route removes such a header.
 */
const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(;|$)/

export async function callRoutes(app: FastifyInstance, context: Context): Promise<void> {
  for (const method of WITHOUT_BODY) app.addHttpMethod(method, { overrideExisting: true })
  // Bodies are kept as bytes, so that a bad credential is reported before a bad body.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => body)
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    reply.headers(ANSWER_HEADERS)
    const type = raw.headers['content-type']
    if (type !== undefined && !MEDIA_TYPE.test(type)) delete raw.headers['content-type']
    if (!bringsBody(raw.headers)) return done()
    checkCaller(context, request, reply).then(() => done(), done)
  })
  app.route({
    // Admission refuses methods that a call does not accept, in its own order of checks.
    method: ['GET', 'HEAD', ...WITH_BODY, ...WITHOUT_BODY],
    config: { guard: 'call', allow: ['GET', 'HEAD', 'POST'] },
    url: '/v1/call/*',
    bodyLimit: CALL_BYTES_MAX,
    exposeHeadRoute: false,
    handler: (request, reply) => answerCall(context, request, reply),
  })
}

/**
 * Checks the credential before the body is read, so that strangers use no memory.
 *
 * @throws GatewayError
 */
async function checkCaller(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  try {
    await identifyCaller(context, request)
  } catch (refusal) {
    await refuse(context, reply, {
      arrival: noteArrival(context, originOf(request, 'call'), request.raw),
      refused: { refusal },
    })
  }
}

async function answerCall(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const arrival = noteArrival(context, originOf(request, 'call'), request.raw)
  const admitted = await admitCall(context, request)
  if ('refusal' in admitted) return await refuse(context, reply, { arrival, refused: admitted })
  const admissionMs = performance.now() - arrival.startedAt
  const { principal, limits, job, queueing, preference } = admitted
  const api = context.catalog.get(job.slug)
  const link = api && termsLink(api.upstream.terms)
  if (link !== undefined) reply.header('link', link)
  reply.header('x-call-id', job.id)
  if (job.mode === 'test') reply.header('x-gateway-mode', 'test')
  if (preference.applied) reply.header('preference-applied', preference.applied)

  const end = await awaitCall(context, { ...admitted, arrival }, callerSocket(request))
  const waitedMs = performance.now() - arrival.startedAt - admissionMs
  // If the caller left, the verdict is a promise, and nobody reads this answer.
  const verdict = end.kind === 'accepted' || end.verdict instanceof Promise ? undefined : end.verdict
  const admission = { admissionMs, quotedMs: queueing.etaMs }
  // If ending the call fails, `CallEndBatcher` repeats it, so its rejection needs no handler.
  const ending = endCall(context, { arrival, job, principal, admission, end })
  // Only the answer to a refused call waits for the end of the call: the caller's next call,
  // perhaps on another node, must not count units that this call does not cost.
  if (verdict?.reach === 'refused') await ending.catch(() => undefined)
  const left = afterRefund(limits, verdict ? refundOf(verdict) : 'nothing')
  reply.headers(rateLimitHeaders(left, waitedMs))
  if (end.kind !== 'reply') {
    reply.header('server-timing', timingWithoutReply(admissionMs, waitedMs))
    if (end.kind === 'accepted') {
      const isUnknown = api && waitsForOperator(context, api)
      return answerAccepted(reply, admitted, isUnknown ? undefined : Math.max(0, Math.round(queueing.etaMs - waitedMs)))
    }
    throw end.error
  }
  const { head, body } = end.reply
  reply.headers(replyHeaders(head, admissionMs))
  if (head.code) throw replyError(head)
  if (api?.fallback) reply.header('link', sourceLink(api, head))
  return reply.type(mediaTypeOf(job)).send(body)
}

async function refuse(
  context: Context,
  reply: FastifyReply,
  { arrival, refused }: { arrival: CallArrival; refused: Refused },
): Promise<never> {
  const { principal, callId, refusal, taken, limits } = refused
  const error = toGatewayError(refusal)
  const admissionMs = performance.now() - arrival.startedAt
  const { request } = reply
  const target = addressedTarget(context.catalog, request.raw)
  recordCall(context, arrival, { target, principal, callId, admissionMs, error })
  reply.header('server-timing', timingWithoutReply(admissionMs))
  if (callId) reply.header('x-call-id', callId)
  if (principal) {
    const ended = endRefusedCall(context, principal, { slug: target.slug, code: error.code, taken })
    // Refused calls are free, so each counts as a request of the account, and as several if it may
    // have a large body. Failures of the gateway do not count.
    if (error.status < 500)
      context.accountRequests.countRefusedCall(
        requestSubject(principal, request),
        unitsOfBody(request.headers, CALL_BYTES_MAX),
      )
    if (principal.mode === 'test') reply.header('x-gateway-mode', 'test')
    // The headers are written after the end, so that they include what the call gave back.
    const isGivenBack = taken !== undefined && (await ended.then(Boolean, () => false))
    if (limits) reply.headers(rateLimitHeaders(afterRefund(limits, isGivenBack ? 'all' : 'nothing')))
  }
  throw error
}

/** @param etaMs time until the call is expected to be sent; undefined: nobody knows */
function answerAccepted(reply: FastifyReply, { job }: Admitted, etaMs: number | undefined): FastifyReply {
  const location = `/v1/calls/${job.id}`
  return reply
    .status(202)
    .header('location', location)
    .header('retry-after', '1')
    .send({ status: 'pending', id: job.id, location, ...(etaMs !== undefined && { etaMs }) })
}
