import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Admission, type Admitted, admitCall, currentLimits } from '../admission/admit.ts'
import { rateLimitHeaders } from '../admission/rate-limit-headers.ts'
import { withdrawCall } from '../calls/withdraw-call.ts'
import type { Context } from '../context.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import { linkHeaders, mediaTypeOf, replyError, replyHeaders } from '../http/call-answer.ts'
import { callerSocket } from '../http/caller-socket.ts'
import type { LimitState } from '../limits/account-limits.ts'
import { CALLER_LEFT_STATUS } from '../limits/settlement-batcher.ts'
import { recordAsyncCall } from '../queue/async-call.ts'
import type { CallJob } from '../queue/call-job.ts'
import { enqueueCall } from '../queue/call-queue.ts'
import type { Reply } from '../queue/reply.ts'
import { redisCall } from '../redis/unavailable.ts'
import { ObservedCall } from '../telemetry/observe-call.ts'

/** How long beyond the deadline a node waits for the worker's own word on it, milliseconds. */
const DEADLINE_GRACE_MS = 250

/** The proxy route: admits a call, queues it, waits for the reply and answers with it. */
export async function callRoutes(app: FastifyInstance, context: Context): Promise<void> {
  // Bodies are kept as bytes: what is wrong with one is told after what is wrong with the credential.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => body)
  app.route({
    // Those that a call does not take are refused by admission, in its order.
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'],
    config: { allow: ['GET', 'POST'] },
    url: '/v1/call/*',
    exposeHeadRoute: false,
    handler: (request, reply) => answerCall(context, request, reply),
  })
}

async function answerCall(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const startedAt = performance.now()
  const admission: Admission = {}
  const observed = new ObservedCall(context, request.id, request.raw.url ?? '')
  let admitted: Admitted | undefined
  try {
    admitted = await admitCall(context, request, admission)
    observed.admitted(admitted.job)
    const admissionMs = performance.now() - startedAt
    reply.headers(rateLimitHeaders(admitted.limits)).header('x-call-id', admitted.job.id)
    if (admitted.job.mode === 'test') reply.header('x-gateway-mode', 'test')
    reply.headers(linkHeaders(context.catalog, admitted.job.slug))
    if (admitted.preference.applied) reply.header('preference-applied', admitted.preference.applied)
    const outcome = await runCall(context, request, admitted)
    if (outcome === STILL_RUNNING) {
      observed.ended(202)
      return answerAccepted(reply, admitted)
    }
    observed.replied(outcome.head)
    reply.headers(replyHeaders(outcome.head, admissionMs))
    if (outcome.head.code) throw replyError(outcome.head)
    settle(context, admitted.job, 200)
    observed.ended(200)
    return reply.type(mediaTypeOf(admitted.job)).send(outcome.body)
  } catch (thrown) {
    const error = toGatewayError(thrown)
    observed.ended(error.status, error.code, admission.principal?.accountId)
    if (admitted) settle(context, admitted.job, thrown instanceof CallerLeftError ? CALLER_LEFT_STATUS : error.status)
    const limits = await limitsFor(context, admission)
    if (limits) reply.headers(rateLimitHeaders(limits))
    throw error
  }
}

/** Nobody is there to be told. */
class CallerLeftError extends GatewayError {
  constructor() {
    super('DEADLINE_EXCEEDED', { message: 'The caller left.' })
  }
}

/** The caller preferred not to wait this long for it. */
const STILL_RUNNING = Symbol('still running')

/** Queues the call and waits for its reply, at most until its deadline or until the caller leaves. */
async function runCall(
  context: Context,
  request: FastifyRequest,
  admitted: Admitted,
): Promise<Reply | typeof STILL_RUNNING> {
  const { job, queued, preference } = admitted
  const { queues, replies, redis, completions, config } = context
  const { reply, forget } = replies.awaitReply(job.id)
  const left = new AbortController()
  const onClose = () => left.abort(new CallerLeftError())
  const socket = callerSocket(request)
  socket.once('close', onClose)
  const waitMs =
    preference.waitMs === undefined
      ? config.callTimeoutMs + DEADLINE_GRACE_MS
      : Math.min(preference.waitMs, config.callTimeoutMs)
  const timer = setTimeout(
    () => left.abort(job.isAsync ? STILL_RUNNING : new GatewayError('DEADLINE_EXCEEDED')),
    waitMs,
  )
  let isQueued = false
  try {
    // It may have left while it was admitted.
    if (socket.destroyed) onClose()
    left.signal.throwIfAborted()
    if (job.isAsync) await redisCall(() => recordAsyncCall(redis, job, queued.waiting))
    await redisCall(() => enqueueCall(queues, { call: job, priority: queued.priority, mayShareJob: false }))
    isQueued = true
    if (waitMs === 0) return STILL_RUNNING
    return await Promise.race([reply, rejection(left.signal)])
  } catch (error) {
    if (error === STILL_RUNNING) return STILL_RUNNING
    // Nobody waits any more; a call whose result is kept runs on, and its worker settles it.
    if (!job.isAsync || !isQueued) abandon(context, admitted)
    if (job.isAsync && !isQueued) completions.add(job, toGatewayError(error).status)
    throw error
  } finally {
    clearTimeout(timer)
    socket.off('close', onClose)
    forget()
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Takes a call that nobody waits for out of its queue, or, when it runs already, has its worker end it. */
function abandon(context: Context, { job, queued }: Admitted): void {
  const { log } = context
  // What is not taken back runs to its deadline: wasted, not wrong.
  withdrawCall(context, { id: job.id, slug: job.slug, waiting: queued.waiting }).catch((error) =>
    log.debug({ err: error, callId: job.id }, 'call not taken back'),
  )
}

function answerAccepted(reply: FastifyReply, { job, queued }: Admitted): FastifyReply {
  return reply
    .status(202)
    .header('location', `/v1/calls/${job.id}`)
    .send({ status: 'pending', id: job.id, location: `/v1/calls/${job.id}`, etaMs: Math.round(queued.etaMs) })
}

/** The account's limits as the caller is to see them; looked up where the refusal came before they were taken. */
async function limitsFor(context: Context, { principal, limits }: Admission): Promise<LimitState | undefined> {
  if (limits || !principal) return limits
  return await currentLimits(context, principal)
}

/** Gives back what the call held and counts it; an asynchronous call's worker does, for its caller may be gone. */
function settle({ completions }: Context, job: CallJob, status: number): void {
  if (!job.isAsync) completions.add(job, status)
}
