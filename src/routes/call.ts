import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Admission, type Admitted, admitCall, currentLimits } from '../admission/admit.ts'
import { countRefusal } from '../admission/count-refusal.ts'
import { rateLimitHeaders } from '../admission/rate-limit-headers.ts'
import { rejectOnAbort } from '../async/abort.ts'
import { withdrawCall } from '../calls/withdraw-call.ts'
import type { Context } from '../context.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import {
  admissionTiming,
  linkHeaders,
  mediaTypeOf,
  PRIVATE_ANSWER,
  replyError,
  replyHeaders,
} from '../http/call-answer.ts'
import { callerSocket } from '../http/caller-socket.ts'
import { type LimitState, refundCall } from '../limits/account-limits.ts'
import { CALLER_LEFT_STATUS } from '../limits/settlement-batcher.ts'
import { recordAsyncCall } from '../queue/async-call.ts'
import type { CallJob } from '../queue/call-job.ts'
import { enqueueCall } from '../queue/call-queue.ts'
import type { Reply } from '../queue/frame.ts'
import { ObservedCall } from '../telemetry/observe-call.ts'

/** How long beyond the deadline a node waits for the worker's own word on it, milliseconds. */
const DEADLINE_GRACE_MS = 250

/** Request headers that an answer depends on: who asks, and in which of the two forms. */
const FORMS = 'accept, authorization, x-api-key, x-gateway-response'

/** The proxy route: admits a call, queues it, waits for the reply and answers with it. */
export async function callRoutes(app: FastifyInstance, context: Context): Promise<void> {
  // Bodies are kept as bytes: what is wrong with one is told after what is wrong with the credential.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => body)
  app.addHook('onRequest', async (_request, reply) => void reply.headers({ ...PRIVATE_ANSWER, vary: FORMS }))
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
    observed.ended(error.status, { code: error.code, cause: error.cause, accountId: admission.principal?.accountId })
    if (admitted && !(thrown instanceof CallerLeftError)) settle(context, admitted.job, error.status)
    const { principal } = admission
    if (principal && !admitted) countRefusal(context, principal, { slug: observed.slug, status: error.status })
    if (admission.callId) reply.header('x-call-id', admission.callId)
    if (admission.principal?.mode === 'test') reply.header('x-gateway-mode', 'test')
    if (!reply.hasHeader('server-timing')) reply.header('server-timing', admissionTiming(performance.now() - startedAt))
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
  const { queues, replies, redis, config } = context
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
  let jobId: string | undefined
  let isAnswerOpen = false
  try {
    // It may have left while it was admitted.
    if (socket.destroyed) onClose()
    left.signal.throwIfAborted()
    if (job.isAsync) await recordAsyncCall(redis, job, queued.waiting)
    const { priority, mayShareJob } = queued
    jobId = await enqueueCall(queues, { call: job, priority, mayShareJob })
    if (waitMs === 0) return STILL_RUNNING
    return await Promise.race([reply, rejectOnAbort(left.signal)])
  } catch (error) {
    if (error === STILL_RUNNING) return STILL_RUNNING
    // Nobody waits any more; a call whose result is kept runs on, and its worker settles it.
    if (job.isAsync && jobId === undefined) await giveBack(context, admitted, error)
    if (error instanceof CallerLeftError && !job.isAsync) {
      settleLeft(context, admitted, jobId === undefined ? undefined : { reply, jobId })
      isAnswerOpen = true
      void Promise.race([reply, delay(LEFT_MS_MAX)]).finally(forget)
    } else if (!job.isAsync || jobId === undefined) withdraw(context, admitted, jobId).catch(() => undefined)
    throw error
  } finally {
    clearTimeout(timer)
    socket.off('close', onClose)
    if (!isAnswerOpen) forget()
  }
}

/** Undoes what an asynchronous call took that could not be queued. A refusal costs nothing. */
async function giveBack(context: Context, { job, principal }: Admitted, error: unknown): Promise<void> {
  const { redis, completions } = context
  const { code, status } = toGatewayError(error)
  if (code !== 'RESULT_STORAGE_FULL') return completions.add(job, status)
  countRefusal(context, principal, { slug: job.slug, status })
  await refundCall(redis, principal, { callId: job.id, at: job.enqueuedAt }).catch(() =>
    completions.compensate(principal, job.id),
  )
}

/** How long the worker's word is waited for on whether a call whose caller left was sent, milliseconds. */
const LEFT_MS_MAX = 2_000

/** What a call counts as whose caller left before anything was sent for it: as time spent waiting on us, uncharged. */
const LEFT_UNSENT_STATUS = 503

/**
 * Takes back a call whose caller left, and settles it: it is charged where a request was sent for it, which the worker's
 * reply tells, or where that is not known. Without a `reply` it was never queued.
 */
function settleLeft(
  context: Context,
  admitted: Admitted,
  queued: { reply: Promise<Reply>; jobId: string } | undefined,
): void {
  const wasSent = async (): Promise<boolean> => {
    const wasWaiting = await withdraw(context, admitted, queued?.jobId)
    if (wasWaiting || !queued) return false
    const attempts = await Promise.race([queued.reply.then(({ head }) => head.times.attempts), delay(LEFT_MS_MAX)])
    return attempts !== 0
  }
  wasSent().then(
    (isCharged) => settle(context, admitted.job, isCharged ? CALLER_LEFT_STATUS : LEFT_UNSENT_STATUS),
    () => settle(context, admitted.job, CALLER_LEFT_STATUS),
  )
}

/** @returns whether no worker had it yet. @throws what Redis throws: the call then runs to its deadline, in vain */
async function withdraw(context: Context, { job, queued }: Admitted, jobId: string | undefined): Promise<boolean> {
  try {
    return await withdrawCall(context, { id: job.id, slug: job.slug, waiting: queued.waiting, jobId })
  } catch (error) {
    context.log.debug({ err: error, callId: job.id }, 'failed to take a call back')
    throw error
  }
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
