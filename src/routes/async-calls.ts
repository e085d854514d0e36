import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Principal } from '../admission/authenticate.ts'
import { waitsForOperator } from '../admission/check-call.ts'
import { RequestCallers } from '../admission/request-callers.ts'
import { cancelCall } from '../calls/cancel-call.ts'
import { QueuePositions } from '../caps/queue-positions.ts'
import type { Context } from '../context.ts'
import type { Db } from '../db/database.ts'
import { hasReplaced } from '../db/rotate-key.ts'
import { GatewayError } from '../errors.ts'
import {
  mediaTypeOf,
  PRIVATE_ANSWER,
  replyError,
  replyHeaders,
  sourceLink,
  termsLink,
} from '../http/answer/call-answer.ts'
import { writeFailure } from '../http/answer/error-answer.ts'
import { retryAfterSeconds } from '../http/answer/public-error.ts'
import { unitsOfBytes } from '../http/request/body-limits.ts'
import { IdParams } from '../http/request/path-ids.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { type AsyncCall, readAsyncCall } from '../queue/async-call.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import { readResultAge } from '../queue/results.ts'
import { parseLoggedId } from '../telemetry/logged-call.ts'

/**
 * How long after a call's deadline its result may still arrive, milliseconds. After that, a missing
 * result counts as lost.
 */
const LATE_MS = 5_000

const Pending = Type.Object({
  status: Type.Literal('pending', { description: 'Always pending: the call waits or runs' }),
  id: Type.String({ description: 'Id of the call' }),
  position: Type.Optional(
    Type.Integer({ description: 'Calls that the gateway sends to the upstream before this call' }),
  ),
  etaMs: Type.Optional(
    Type.Integer({
      description:
        'Expected time until the gateway sends the call, milliseconds; 0: the call does not wait, and its request may be under way; absent if nobody knows, for example while an operator holds the calls of the API or no worker serves it',
    }),
  ),
})

type CallRequest = FastifyRequest<{ Params: Static<typeof IdParams> }>

const RESULT_ROUTE = {
  config: { guard: 'call', errors: ['CALL_NOT_FOUND'], outcome: 'call' } as const,
  schema: {
    summary: 'The result of an asynchronous call',
    tags: ['Calls'],
    params: IdParams,
    response: { 202: Pending },
  },
}

const CANCEL_ROUTE = {
  config: { guard: 'call', errors: ['CALL_NOT_FOUND', 'CALL_ENDED'] } as const,
  schema: {
    summary: 'Cancel an asynchronous call',
    description: 'If the call still waits, it never reaches the upstream. Afterwards its result is 409 CALL_CANCELLED.',
    tags: ['Calls'],
    params: IdParams,
    response: { 204: NoContent },
  },
}

/** Results of asynchronous calls. */
export async function asyncCallRoutes(app: App, context: Context): Promise<void> {
  const { config, accountRequests, keptResults } = context
  const positions = new QueuePositions(context.caps)
  app.addHook('onRequest', async (_request, reply) => void reply.headers(PRIVATE_ANSWER))
  // The headers are read together with the answer, because a cancelled call may have given units
  // back.
  const callers = new RequestCallers(app, context)
  const findOwnCall = async (request: CallRequest): Promise<AsyncCall> => {
    return await findCallOf(context, request, await callers.identify(request))
  }
  app.get('/v1/calls/:id', RESULT_ROUTE, async (request: CallRequest, reply: FastifyReply) => {
    const call = await findOwnCall(request)
    const { id } = call
    reply.header('x-call-id', id)
    if (call.mode === 'test') reply.header('x-gateway-mode', 'test')
    const result = await keptResults.read(call)
    // The request itself has already taken one unit.
    accountRequests.take(call.accountId, unitsOfBytes(result?.body.length ?? 0) - 1)
    if (!result && !(await isOverdue(context, call))) {
      return reply
        .status(202)
        .header('retry-after', '1')
        .send(await pendingAnswer(context, positions, call))
    }
    if (result) reply.headers(replyHeaders(result.head))
    const api = context.catalog.get(call.slug)
    const link = api && termsLink(api.upstream.terms)
    if (link !== undefined) reply.header('link', link)
    if (result && !result.head.code) {
      if (api?.fallback) reply.header('link', sourceLink(api, result.head))
      return reply.type(mediaTypeOf(call)).send(result.body)
    }
    // The answer has the envelope of a call, not of this route.
    const error = result ? await keptError(context, call, result.head) : new GatewayError('DEADLINE_EXCEEDED')
    const retryAfter = retryAfterSeconds(error)
    if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
    return writeFailure(reply.status(error.status), error, { baseUrl: config.http.baseUrl, isCall: true })
  })

  app.delete('/v1/calls/:id', CANCEL_ROUTE, async (request, reply) => {
    const call = await findOwnCall(request)
    if (!(await cancelCall(context, call))) throw new GatewayError('CALL_ENDED')
    return reply.status(204).header('x-call-id', call.id).send()
  })
}

/**
 * @throws GatewayError CALL_NOT_FOUND, also for a call of another account, because its existence
 *   must not be revealed
 */
async function findCallOf(
  { redis, db }: Context,
  { params }: Pick<CallRequest, 'params'>,
  principal: Principal,
): Promise<AsyncCall> {
  const named = parseLoggedId(params.id)
  const { accountId, mode } = principal
  const call = named?.kind === 'call' ? await readAsyncCall(redis, { id: `call_${named.uuid}`, accountId }) : undefined
  // A test key must not read results of live calls.
  const isReached = call && !(mode === 'test' && call.mode !== 'test') && (await mayFind(db, principal, call))
  if (!isReached) throw new GatewayError('CALL_NOT_FOUND')
  return call
}

/**
 * Whether a caller may see a call. Applications, teams' keys, and keys with limits or lists of
 * their own find only the calls that they made, or that the keys made which they replaced.
 */
async function mayFind(
  db: Db,
  { connection, allowance, isTeamKey, keyId }: Principal,
  { keyId: madeBy }: AsyncCall,
): Promise<boolean> {
  if (!(connection || allowance || isTeamKey) || keyId === madeBy) return true
  if (connection || keyId === undefined || madeBy === undefined) return false
  return await hasReplaced(db, keyId, madeBy)
}

/**
 * The error with which a call ended. If it quoted a wait, a part of the wait or all of it has
 * passed.
 */
async function keptError({ redis }: Context, call: AsyncCall, head: ReplyHead): Promise<GatewayError> {
  if (head.retryAfterMs === undefined) return replyError(head)
  const ageMs = await readResultAge(redis, call)
  return replyError({ ...head, retryAfterMs: Math.max(0, head.retryAfterMs - ageMs) })
}

/** Nobody will ever answer the call, for example because its worker died and Redis lost the job. */
async function isOverdue({ redis }: Context, { deadline }: AsyncCall): Promise<boolean> {
  const [seconds] = await redis.time()
  return Number(seconds) * 1_000 > deadline + LATE_MS
}

async function pendingAnswer({ catalog, lanes }: Context, positions: QueuePositions, call: AsyncCall): Promise<object> {
  const api = catalog.get(call.slug)
  if (!api || call.mode === 'test') return { status: 'pending', id: call.id }
  const pending = { status: 'pending', id: call.id }
  const place = call.waiting && (await positions.of(call.waiting))
  // A call without a place has a permit, needs none, or gets a stored answer.
  const { ahead, etaMs } = place && place.ahead >= 0 ? place : { ahead: undefined, etaMs: 0 }
  if (waitsForOperator({ lanes }, api)) return { ...pending, ...(ahead !== undefined && { position: ahead }) }
  return { ...pending, position: ahead ?? 0, etaMs }
}
