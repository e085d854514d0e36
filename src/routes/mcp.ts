import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { authenticateNow } from '../admission/authenticate.ts'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { onBehalfOf } from '../http/caller-socket.ts'
import { requireOwnOrigin } from '../http/own-origin.ts'
import type { McpAnswer } from '../mcp/answer-message.ts'
import type { SendCall } from '../mcp/call-tool.ts'

const Message = Type.Object(
  { jsonrpc: Type.Literal('2.0'), method: Type.Optional(Type.String()) },
  { additionalProperties: true, description: 'One JSON-RPC 2.0 message of the Model Context Protocol' },
)
const Answer = Type.Object({ jsonrpc: Type.Literal('2.0') }, { additionalProperties: true })

/** What the protocol's own server refuses: a wrong revision, or a client that does not accept both forms of answer. */
const Refusal = Type.Object({}, { additionalProperties: true, description: 'A JSON-RPC error, or an error of ours' })

/** Headers of the caller that its calls carry too. */
const CARRIED = ['x-api-key', 'authorization', 'x-gateway-scenario'] as const

/**
 * The Model Context Protocol, Streamable HTTP without sessions: every request is answered on its own by any node. A
 * tool's call goes through the proxy route of this process under the caller's credential and address.
 */
export async function mcpRoutes(app: FastifyInstance, context: Context): Promise<void> {
  const { catalog, config } = context
  const { baseUrl } = config.http

  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireOwnOrigin(request, baseUrl)
    await authenticateNow(context, request)
  })

  const all = {
    config: { guard: 'call', errors: ['FORBIDDEN'] as const } as const,
    schema: {
      summary: 'MCP server of all APIs',
      description: 'Tools: search_apis, describe_api, call_api. Stateless Streamable HTTP.',
      tags: ['MCP'],
      operationId: 'mcp',
      body: Message,
      response: {
        200: { content: { 'application/json': { schema: Answer } } },
        202: Type.Null(),
        400: Refusal,
        406: Refusal,
      },
    },
  }
  app.post('/mcp', all, async (request, reply: FastifyReply) => {
    const { answerCatalogMessage } = await loadProtocol()
    return send(reply, await answerCatalogMessage({ catalog, baseUrl, send: sendAs(app, request) }, request))
  })

  const one = {
    config: { guard: 'call', errors: ['FORBIDDEN', 'API_NOT_FOUND'] as const } as const,
    schema: {
      ...all.schema,
      summary: 'MCP server of one API',
      description: 'One typed tool per endpoint. Stateless Streamable HTTP.',
      operationId: 'mcpOfApi',
    },
  }
  app.post<{ Params: { slug: string } }>('/mcp/:slug', one, async (request, reply: FastifyReply) => {
    const api = catalog.get(request.params.slug)
    if (!api) throw new GatewayError('API_NOT_FOUND')
    const { answerApiMessage } = await loadProtocol()
    return send(reply, await answerApiMessage(api, { catalog, baseUrl, send: sendAs(app, request) }, request))
  })
}

/** Sends calls for the sender of a request. */
function sendAs(app: FastifyInstance, request: Pick<FastifyRequest, 'headers' | 'ip' | 'raw'>): SendCall {
  const headers = Object.fromEntries(
    CARRIED.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])),
  )
  return async (url, parameters) => {
    const {
      statusCode,
      headers: answered,
      body,
    } = await onBehalfOf(
      request,
      // Awaited within: it is sent when it is awaited.
      async () => await app.inject({ method: 'POST', url, headers, payload: parameters, remoteAddress: request.ip }),
    )
    return { status: statusCode, headers: answered, body }
  }
}

/** The protocol's own code is a quarter of what a node would load at its start: it is loaded with the first message. */
function loadProtocol() {
  return import('../mcp/answer-message.ts')
}

function send(reply: FastifyReply, { status, type, body }: McpAnswer): FastifyReply {
  reply.status(status)
  return type === undefined ? reply.send() : reply.type(type).send(body)
}
