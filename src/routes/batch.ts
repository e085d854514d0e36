import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { type AdmittedBatch, admitBatch } from '../admission/admit-batch.ts'
import { authenticateNow } from '../admission/authenticate.ts'
import { endRefusedBatchCalls } from '../admission/end-refused-calls.ts'
import { rateLimitHeaders } from '../admission/rate-limit-headers.ts'
import { RequestCallers } from '../admission/request-callers.ts'
import { BatchResults } from '../calls/batch-results.ts'
import { CallerLeftError } from '../calls/pending-call.ts'
import { runBatch } from '../calls/run-batch.ts'
import type { Context } from '../context.ts'
import type { GatewayError } from '../errors.ts'
import { type BatchAnswer, BatchLines, BatchObject } from '../http/answer/batch-answer.ts'
import { prefersType } from '../http/request/accept.ts'
import { MESSAGES_BYTES_MAX, unitsOfBody } from '../http/request/body-limits.ts'
import { callerSocket, originOf } from '../http/request/caller-socket.ts'
import type { App } from '../http/request/typed-app.ts'
import { holdingOf } from '../http/server/holding.ts'
import { limitRefusal } from '../limits/limit-refusal.ts'

/** Most calls in a batch. */
const CALLS_MAX = 50

const BatchBody = Type.Object({
  calls: Type.Array(
    Type.Object({
      ref: Type.Optional(
        Type.String({ maxLength: 100, description: 'Your own name for the call, which the line of the call repeats' }),
      ),
      api: Type.String({ maxLength: 64, description: 'Slug, as in the catalog' }),
      endpoint: Type.String({ maxLength: 128, description: 'As in the catalog, such as /current' }),
      parameters: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), { description: 'Parameters of the endpoint' }),
      ),
    }),
    { minItems: 1, maxItems: CALLS_MAX, description: 'The calls, each answered on a line of its own' },
  ),
  take: Type.Optional(
    Type.Enum(['all', 'fit'], {
      default: 'all',
      description:
        'all: the gateway refuses the batch if your limits do not allow all calls; fit: the gateway makes as many calls as your limits allow',
    }),
  ),
})

type Item = Static<typeof BatchBody>['calls'][number]

const Results = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          index: Type.Integer({ minimum: 0, description: 'Index of the call in calls, from 0' }),
          ref: Type.Optional(Type.String({ description: 'Your own name for the call' })),
          id: Type.Optional(
            Type.String({ description: 'Id of the call; absent if the call was refused before it got an id' }),
          ),
          status: Type.Integer({ description: 'HTTP status that the call would have got as a request of its own' }),
          data: Type.Optional(Type.Unknown({ description: 'Data of a call that succeeded' })),
          error: Type.Optional(Type.Unknown({ description: 'Failure of a call: code, message, hint and docs' })),
          retryAfter: Type.Optional(
            Type.Integer({
              description: 'Seconds until you may send a failed call again; absent if that is not known',
            }),
          ),
          cache: Type.Optional(
            Type.Enum(['hit', 'stale', 'miss'], {
              description:
                'Whether the gateway answered the call with a stored answer: hit (a fresh stored answer), stale (a stored answer past its lifetime), miss (an answer of the source). Absent if answers of the endpoint are not stored',
            }),
          ),
          recordedFor: Type.Optional(
            Type.String({
              description: 'The value that the header X-Gateway-Recorded-For of the call would have, in test mode',
            }),
          ),
          example: Type.Optional(
            Type.Enum(['document', 'made'], {
              description: 'The value that the header X-Gateway-Example of the call would have, in test mode',
            }),
          ),
          link: Type.Optional(
            Type.String({
              description:
                'The value that the header Link of the call would have, if the API has two sources: the source that answered (rel="via"), with its terms and licence',
            }),
          ),
        },
        { additionalProperties: true },
      ),
      { description: 'A result for each call, in order' },
    ),
    done: Type.Boolean({ description: 'Always true: every call of the batch has a result' }),
    ok: Type.Integer({ description: 'Calls that succeeded' }),
    failed: Type.Integer({ description: 'Calls that failed' }),
    charged: Type.Integer({ description: 'How many calls of your monthly quota the batch used' }),
    deduplicated: Type.Integer({ description: 'Calls that got the answer or the refusal of an equal call' }),
    mode: Type.Optional(Type.Enum(['live', 'test'], { description: 'Mode of all calls of the batch: test or live' })),
  },
  { title: 'BatchResults' },
)

/** Many calls with a single check of limits. Each call is answered separately, when it ends. */
export async function batchRoutes(app: App, context: Context): Promise<void> {
  const options = {
    bodyLimit: MESSAGES_BYTES_MAX,
    config: {
      guard: 'call',
      errors: ['RATE_LIMIT_EXCEEDED', 'MONTHLY_QUOTA_EXCEEDED', 'CONCURRENCY_LIMIT_EXCEEDED', 'OVERLOADED'],
    } as const,
    schema: {
      summary: 'Make many calls in one request',
      description:
        'The answer is one line of JSON for each call, written when the call ends, and a last line with the totals of the batch. With Accept: application/json it is one object with the results in order. `Prefer: wait=5` gives the calls five seconds: the gateway refuses calls that would take longer at once, and withdraws calls that have not ended by then. The gateway ignores `respond-async`, because it sends each line as soon as its call ends, and `X-Gateway-Response`, because each line has the mapped data.',
      tags: ['Calls'],
      operationId: 'batch',
      body: BatchBody,
      response: {
        200: {
          content: {
            'application/x-ndjson': { schema: Type.String() },
            'application/json': { schema: Results },
          },
        },
      },
    },
  }
  const callers = new RequestCallers(app, context)
  // Checked before the body, so that only callers with a credential learn that their body is wrong.
  app.addHook('onRequest', async (request) => {
    await callers.identify(request, unitsOfBody(request.headers, MESSAGES_BYTES_MAX))
  })
  app.post(
    '/v1/batch',
    options,
    async (request: FastifyRequest<{ Body: Static<typeof BatchBody> }>, reply: FastifyReply) => {
      const { calls: items, take = 'all' } = request.body
      const batch = await admitBatch(context, request as FastifyRequest, { items, take })
      if (batch.grant) reply.headers(rateLimitHeaders(batch.grant.state))
      if (batch.principal.mode === 'test') reply.header('x-gateway-mode', 'test')
      if (batch.preference.applied) reply.header('preference-applied', batch.preference.applied)
      reply.header('cache-control', 'no-store')
      const answer = wantsOneObject(request.headers.accept) ? new BatchObject(items.length) : new BatchLines()
      void run(context, request, { items, batch, answer }).catch((error: unknown) => {
        request.log.error({ err: error }, 'failed to end a batch')
        answer.stream.destroy()
      })
      return reply.type(answer.type).send(answer.stream)
    },
  )
}

/** Runs the batch and writes the results. */
async function run(
  context: Context,
  request: Pick<FastifyRequest, 'id' | 'raw' | 'headers' | 'ip'>,
  { items, batch, answer }: { items: Item[]; batch: AdmittedBatch; answer: BatchAnswer },
): Promise<void> {
  const left = new AbortController()
  const onClose = () => left.abort(new CallerLeftError())
  const socket = callerSocket(request)
  socket.once('close', onClose)
  if (socket.destroyed) onClose()
  const results = new BatchResults(context, { items, answer, holding: holdingOf(request.raw) })
  try {
    const uncalled = [...batch.refused, ...notTaken(batch)]
    for (const [index, error] of uncalled) results.refuse(index, error)
    const refusals = uncalled.map(([index, error]) => ({
      ...{ api: items[index]?.api ?? '', endpoint: items[index]?.endpoint ?? '', error },
    }))
    const origin = originOf(request, 'batch')
    void endRefusedBatchCalls(context, batch.principal, { origin, refusals })
    const charged = await runBatch(context, batch, {
      origin,
      headers: request.headers,
      ip: request.ip,
      left: left.signal,
      authenticateAgain: () => authenticateNow(context, request),
      emit: (unit, end) => results.write(unit, end),
    })
    results.end({ charged, mode: batch.principal.mode })
  } finally {
    socket.off('close', onClose)
  }
}

/**
 * For a batch that takes what fits: the calls that did not fit, by index, each with the limit that
 * refused it.
 */
function notTaken({ principal, units, grant }: AdmittedBatch): [index: number, error: GatewayError][] {
  if (!grant || grant.granted === units.length) return []
  const error = limitRefusal(grant.refusedBy, grant.state, { tier: principal.tier, subject: principal })
  return units
    .slice(grant.granted)
    .flatMap(({ indexes }) => indexes.map((index): [number, GatewayError] => [index, error]))
}

function wantsOneObject(accept: string | undefined): boolean {
  const [json, lines] = ['application/json', 'application/x-ndjson']
  return prefersType(accept, json, lines) && !prefersType(accept, lines, json)
}
