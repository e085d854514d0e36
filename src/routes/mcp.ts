import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Principal } from '../admission/authenticate.ts'
import { readAllowance, readQuote } from '../admission/quote.ts'
import { RequestCallers } from '../admission/request-callers.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { unknownApi } from '../catalog/unknown-api.ts'
import type { Context } from '../context.ts'
import { publicStateOf } from '../health/public-state.ts'
import { MESSAGES_BYTES_MAX, unitsOfBody } from '../http/request/body-limits.ts'
import { requireOwnOrigin } from '../http/request/own-origin.ts'
import { SlugParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { answerArray, MESSAGES_MAX } from '../mcp/answer-array.ts'
import type { McpMessage } from '../mcp/answer-message.ts'
import { openCallClient, whenClientLeaves } from '../mcp/call-client.ts'
import { type MessageSender, RunningTools } from '../mcp/running-tools.ts'
import type { McpDeps } from '../mcp/server.ts'
import { Renderings } from '../pages/rendering.ts'
import { clientOf } from '../throttles/client-network.ts'

const Message = Type.Object(
  {
    jsonrpc: Type.Literal('2.0', { description: 'Version of JSON-RPC' }),
    method: Type.Optional(Type.String({ description: 'Name of the method, such as tools/list' })),
  },
  { additionalProperties: true, description: 'One JSON-RPC 2.0 message of the Model Context Protocol' },
)
const Chosen = Type.Object({
  apis: Type.Optional(
    Type.String({
      maxLength: 600,
      description: 'Names of APIs, separated by commas. The server then has the typed tools of these APIs',
    }),
  ),
})
/**
 * The body is not checked here, because its messages are checked one by one and each gets its own
 * answer.
 */
const Messages = Type.Array(Type.Unknown(), {
  description: `Up to ${MESSAGES_MAX} messages, only from clients of revision 2025-03-26; the answer is then an array too`,
})
const Answer = Type.Object(
  { jsonrpc: Type.Literal('2.0', { description: 'Version of JSON-RPC' }) },
  { additionalProperties: true },
)

/**
 * Refusals of the protocol library: a wrong revision, headers that differ from the body, an unknown
 * method.
 */
const Refusal = Type.Object(
  {},
  { additionalProperties: true, description: 'A JSON-RPC error, or an error of the gateway' },
)

/**
 * Characters of answers that cost as much as one request. Both the tool's answer and the call's
 * answer behind it count. For example, a tools/list of all APIs has 120,000 characters and takes
 * five times the processor time of a ping.
 */
const CHARACTERS_PER_UNIT = 32 * 1024

/** Additional units by kind of message. Most messages make a server, a result and a validation. */
function unitsOf(message: unknown): number {
  if (Array.isArray(message)) return message.reduce((sum, one) => sum + 1 + unitsOf(one), -1)
  const { method, params } = Object(message)
  if (typeof method !== 'string' || method === 'ping' || method.startsWith('notifications/')) return 0
  const calls: unknown = Object(Object(params).arguments).calls
  return Array.isArray(calls) ? 1 + calls.length : 1
}

const ALL_APIS = {
  bodyLimit: MESSAGES_BYTES_MAX,
  config: { guard: 'call', errors: ['FORBIDDEN', 'API_NOT_FOUND'] as const } as const,
  schema: {
    summary: 'MCP server of all APIs, or of the APIs that the parameter apis names',
    description:
      'Tools: search_apis, describe_api, call_api, call_apis; with `?apis=weather,currency` one typed tool per endpoint of those APIs. Stateless Streamable HTTP.',
    querystring: Chosen,
    tags: ['MCP'],
    operationId: 'mcp',
    body: Type.Union([Message, Messages]),
    response: {
      200: {
        content: {
          'application/json': { schema: Type.Union([Answer, Type.Array(Answer)]) },
          'text/event-stream': { schema: Type.String() },
        },
      },
      202: Type.Null(),
      400: Refusal,
      404: Refusal,
      406: Refusal,
    },
  },
}

const ONE_API = {
  bodyLimit: MESSAGES_BYTES_MAX,
  config: { guard: 'call', errors: ['FORBIDDEN', 'API_NOT_FOUND'] as const } as const,
  schema: {
    params: SlugParams,
    ...ALL_APIS.schema,
    querystring: Type.Object({}),
    summary: 'MCP server of one API',
    description: 'One typed tool per endpoint. Stateless Streamable HTTP.',
    operationId: 'mcpOfApi',
  },
}

/**
 * The Model Context Protocol, Streamable HTTP without sessions, so each node can answer each
 * request. A tool's call goes through the proxy route of this process, with the caller's
 * credential and address.
 */
export async function mcpRoutes(app: App, context: Context): Promise<void> {
  const { catalog, config, health } = context
  const { baseUrl } = config.http
  const callers = new RequestCallers(app, context)
  const runningTools = new RunningTools(context)
  const rendered = new Renderings<string>(() => publicStateOf(catalog, health))
  const depsOf = (request: FastifyRequest, message: { body: unknown; left: AbortSignal }): McpDeps => ({
    catalog,
    baseUrl,
    health,
    tier: callers.of(request)?.tier ?? 'developer',
    allowedApis: callers.of(request)?.allowance?.apis ?? null,
    mayWrite: callers.of(request)?.mayWrite === true,
    providerKeys: callers.of(request)?.providerKeys ?? new Map(),
    rendered,
    quotes: quotesFor(context, callers.of(request)),
    client: openCallClient(app, context, {
      runningTools,
      request,
      message: message.body,
      left: message.left,
      sender: senderOf(callers.of(request), request.ip),
      onAnswer: ({ body }) => charge(request, Math.floor(body.length / CHARACTERS_PER_UNIT)),
    }),
  })

  // The units are taken when the message is answered, because its cost is not known before.
  const charge = (request: FastifyRequest, units: number): void => {
    const { accountId } = callers.of(request) ?? {}
    if (accountId !== undefined && units > 0) context.accountRequests.chargeWork(accountId, units)
  }
  const answer = async (request: FastifyRequest, reply: FastifyReply, answerOne: AnswerOne) => {
    const { url, headers, body } = request
    const left = whenClientLeaves(reply)
    const answerBody = (one: unknown, accept = headers.accept) =>
      answerOne(depsOf(request, { body: one, left }), { url, headers: { ...headers, accept }, body: one })
    const response = Array.isArray(body) ? await answerArray(body, headers, answerBody) : await answerBody(body)
    charge(request, unitsOf(body))
    return send(reply, response, (characters) => charge(request, Math.floor(characters / CHARACTERS_PER_UNIT)))
  }

  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireOwnOrigin(request, baseUrl, context.config.http.corsOrigins)
    await callers.identify(request, unitsOfBody(request.headers, MESSAGES_BYTES_MAX))
  })

  app.post(
    '/mcp',
    ALL_APIS,
    async (request: FastifyRequest<{ Querystring: Static<typeof Chosen> }>, reply: FastifyReply) => {
      const { answerApiMessage, answerCatalogMessage } = await loadProtocol()
      const { apis } = request.query
      if (apis === undefined) return answer(request, reply, answerCatalogMessage)
      const chosen = chosenApis(catalog, apis)
      return answer(request, reply, (deps, message) => answerApiMessage(chosen, deps, message))
    },
  )

  app.post(
    '/mcp/:slug',
    ONE_API,
    async (request: FastifyRequest<{ Params: Static<typeof SlugParams> }>, reply: FastifyReply) => {
      const apis = [servedApi(catalog, request.params.slug)]
      const { answerApiMessage } = await loadProtocol()
      return answer(request, reply, (deps, message) => answerApiMessage(apis, deps, message))
    },
  )
}

type AnswerOne = (deps: McpDeps, message: McpMessage) => Promise<Response>

/**
 * The APIs of a list of names, without duplicates.
 * @throws GatewayError API_NOT_FOUND
 */
function chosenApis(catalog: Catalog, names: string): Api[] {
  return [...new Set(names.split(',').map((name) => name.trim()))].map((name) => servedApi(catalog, name))
}

/** @throws GatewayError API_NOT_FOUND */
function servedApi(catalog: Catalog, name: string): Api {
  const api = catalog.get(name)
  if (!api || api.isSwitchedOff) throw unknownApi(catalog, name)
  return api
}

function quotesFor(context: Context, principal: Principal | undefined): McpDeps['quotes'] {
  return {
    allowance: async () => principal && (await readAllowance(context, principal))?.allowance,
    of: async (api, endpoints) => principal && (await readQuote(context, principal, { api, endpoints }))?.quote,
  }
}

function senderOf(principal: Principal | undefined, address: string): MessageSender {
  return { accountId: principal?.accountId ?? '', keyId: principal?.keyId, network: clientOf(address) }
}

/**
 * The protocol library is loaded with the first message, because it would be a quarter of what a
 * node loads at its start.
 */
function loadProtocol() {
  return import('../mcp/answer-message.ts')
}

/**
 * Sends an answer. A stream is passed on as it arrives, with a header that prevents proxies from
 * buffering it.
 *
 * @param onLength called at the end with the characters of the answer; for a stream, with its bytes
 */
async function send(
  reply: FastifyReply,
  response: Response,
  onLength: (length: number) => void,
): Promise<FastifyReply> {
  const type = response.headers.get('content-type')
  reply.status(response.status)
  if (type !== null) reply.type(type)
  if (response.body === null) return reply.send()
  if (!type?.startsWith('text/event-stream')) {
    const text = await response.text()
    onLength(text.length)
    return reply.send(text)
  }
  let length = 0
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      length += chunk.length
      controller.enqueue(chunk)
    },
    flush: () => onLength(length),
  })
  const stream = response.body.pipeThrough(counted)
  return reply.header('x-accel-buffering', 'no').send(Readable.fromWeb(stream as ReadableStream))
}
