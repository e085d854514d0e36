import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Admitted, admitCall, identifyCaller, type Refused } from '../admission/admit.ts'
import type { Principal } from '../admission/authenticate.ts'
import { countRefusal } from '../admission/count-refusal.ts'
import { rateLimitHeaders } from '../admission/rate-limit-headers.ts'
import { type CallEnd, enqueueAndAwait } from '../calls/await-call.ts'
import { shownErrorStatus, usageStatusOfReply } from '../calls/call-status.ts'
import type { Context } from '../context.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { bringsBody, CALL_BYTES_MAX, unitsOfBody } from '../http/body-limits.ts'
import {
  linkHeaders,
  mediaTypeOf,
  PRIVATE_ANSWER,
  replyError,
  replyHeaders,
  sourceHeaders,
  timingWithoutReply,
} from '../http/call-answer.ts'
import { callerSocket, originOf } from '../http/caller-socket.ts'
import { type LimitState, withoutCall, withoutMonthUnit } from '../limits/account-limits.ts'
import { isCharged } from '../limits/charge.ts'
import { ObservedCall } from '../telemetry/observe-call.ts'

/** Request headers that an answer depends on. */
const VARY = 'accept, authorization, prefer, x-api-key, x-gateway-mode, x-gateway-response, x-gateway-scenario'

const ANSWER_HEADERS = { ...PRIVATE_ANSWER, vary: VARY }

/** What Fastify takes for a media type. For any other it would refuse before the credential is looked at, so that header is dropped. */
const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(;|$)/

export async function callRoutes(app: FastifyInstance, context: Context): Promise<void> {
  // Bodies are kept as bytes: a bad body is reported after a bad credential.
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
    // Admission refuses the methods that a call does not take, in its order of checks.
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'],
    config: { allow: ['GET', 'HEAD', 'POST'] },
    url: '/v1/call/*',
    bodyLimit: CALL_BYTES_MAX,
    exposeHeadRoute: false,
    handler: (request, reply) => answerCall(context, request, reply),
  })
}

/** Before a body is read: nothing is kept for callers without a credential. @throws GatewayError */
async function checkCaller(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  try {
    await identifyCaller(context, request)
  } catch (refusal) {
    const observed = new ObservedCall(context, originOf(request, 'call'), request.raw.url ?? '')
    reply.header('server-timing', timingWithoutReply(observed.admissionEnded()))
    refuse(context, reply, { observed, refused: { refusal } })
  }
}

async function answerCall(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const startedAt = performance.now()
  const origin = originOf(request, 'call')
  const observed = new ObservedCall(context, origin, request.raw.url ?? '')
  const admission = await admitCall(context, request, { origin, traceparent: observed.traceparent })
  const admissionMs = observed.admissionEnded()
  if ('refusal' in admission) {
    reply.header('server-timing', timingWithoutReply(admissionMs))
    return refuse(context, reply, { observed, refused: admission })
  }
  const { principal, limits, job, queueing, preference } = admission
  observed.admitted(job, queueing.etaMs)
  reply.headers(linkHeaders(context.catalog, job.slug))
  reply.header('x-call-id', job.id)
  if (job.mode === 'test') reply.header('x-gateway-mode', 'test')
  if (preference.applied) reply.header('preference-applied', preference.applied)

  const end = await enqueueAndAwait(context, admission, callerSocket(request))
  const waitedMs = performance.now() - startedAt - admissionMs
  reply.headers(rateLimitHeaders(limitsAfter(end, limits), waitedMs))
  if (job.isAsync && end.kind !== 'failed') observed.leftToWorker()
  if (end.kind === 'pending') {
    observed.ended(202)
    reply.header('server-timing', timingWithoutReply(admissionMs, waitedMs))
    return answerPending(reply, admission, waitedMs)
  }
  if (end.kind === 'failed') {
    reply.header('server-timing', timingWithoutReply(admissionMs, waitedMs))
    throw noteFailure(observed, end.error, { caller: principal })
  }
  const { head, body } = end.reply
  observed.replied(end.reply)
  context.knownAnswers.learn(admission.queueing.answerKey, head)
  context.spareRoom.learn(job, head)
  reply.headers(replyHeaders(head, admissionMs))
  if (head.code) {
    throw noteFailure(observed, replyError(head), { caller: principal })
  }
  observed.ended(200)
  reply.headers(sourceHeaders(context.catalog, job.slug, head))
  return reply.type(mediaTypeOf(job)).send(body)
}

/** The limits as headers show them, after what this end refunds. */
function limitsAfter(end: CallEnd, limits: LimitState): LimitState {
  if (end.kind === 'pending') return limits
  const isReply = end.kind === 'reply'
  if (isReply ? end.reply.head.isRefused : end.isRefused) return withoutCall(limits)
  return isCharged(isReply ? usageStatusOfReply(end.reply.head) : end.error.status) ? limits : withoutMonthUnit(limits)
}

function refuse(
  context: Context,
  reply: FastifyReply,
  { observed, refused }: { observed: ObservedCall; refused: Refused },
): never {
  const { principal, callId, refusal } = refused
  const error = noteFailure(observed, toGatewayError(refusal), { caller: principal, callId })
  if (callId) reply.header('x-call-id', callId)
  if (principal) {
    countRefusal(context, principal, { slug: observed.slug, status: error.status })
    const { headers } = reply.request
    if (error.status < 500)
      context.accountRequests.countRefusedCall(principal.accountId, unitsOfBody(headers, CALL_BYTES_MAX))
    if (principal.mode === 'test') reply.header('x-gateway-mode', 'test')
    if (refused.limits) reply.headers(rateLimitHeaders(refused.limits))
  }
  throw error
}

function noteFailure(
  observed: ObservedCall,
  error: GatewayError,
  of: { caller: Principal | undefined; callId?: string | undefined },
): GatewayError {
  const { code, cause, details } = error
  observed.ended(shownErrorStatus(error), { code, cause, retryAfterMs: details.retryAfterMs, ...of })
  return error
}

function answerPending(reply: FastifyReply, { job, queueing }: Admitted, waitedMs: number): FastifyReply {
  const location = `/v1/calls/${job.id}`
  return reply
    .status(202)
    .header('location', location)
    .send({ status: 'pending', id: job.id, location, etaMs: Math.max(0, Math.round(queueing.etaMs - waitedMs)) })
}
