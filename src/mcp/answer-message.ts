import type { IncomingHttpHeaders } from 'node:http'
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolErrorCode,
  type Server,
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import type { Api } from '../catalog/catalog.ts'
import { acceptsType } from '../http/request/accept.ts'
import { isId, type MessageError, readMessage } from './read-message.ts'
import { createApiServer, createCatalogServer, type Era, type McpDeps } from './server.ts'

/** A message, with the headers of its HTTP request. */
export interface McpMessage {
  url: string
  headers: IncomingHttpHeaders
  /** The parsed body. */
  body: unknown
}

/** Replaces the protocol library's message, which demands both forms. */
export const NOT_ACCEPTABLE = {
  jsonrpc: '2.0',
  id: null,
  error: { code: -32_000, message: 'Accept must allow application/json or text/event-stream.' },
}

/** The protocol revisions that the servers support, the newest first. */
const REVISIONS = ['2026-07-28', ...SUPPORTED_PROTOCOL_VERSIONS]

/** Most characters of a header that an error repeats. */
const REPEATED_CHARACTERS_MAX = 40

/** Answers a message to the server of all APIs. */
export function answerCatalogMessage(deps: McpDeps, message: McpMessage): Promise<Response> {
  return answerMessage((era) => createCatalogServer(deps, era), deps, message)
}

/** Answers a message to a server of chosen APIs. */
export function answerApiMessage(apis: Api[], deps: McpDeps, message: McpMessage): Promise<Response> {
  return answerMessage((era) => createApiServer(apis, deps, era), deps, message)
}

/**
 * Passes the message to the protocol library's server, which exists only until the answer is
 * complete.
 */
async function answerMessage(create: (era: Era) => Server, deps: McpDeps, given: McpMessage): Promise<Response> {
  const accepted = acceptedForms(given.headers.accept)
  if (!accepted.json && !accepted.stream) return Response.json(NOT_ACCEPTABLE, { status: 406 })
  const revision = unknownRevision(given)
  if (revision !== undefined) return refuseRevision(given.body, revision)
  const read = readMessage(given.body)
  if ('error' in read) {
    const answer = errorTo(given.body, read.error)
    if (read.error.code === ProtocolErrorCode.InvalidRequest) return Response.json(answer, { status: 400 })
    return inAcceptedForm(answer, accepted)
  }
  const message = { url: given.url, headers: given.headers, body: read.message }
  const { body } = message
  await cancelRequest(deps, body)
  const request = toWebRequest(deps, message)
  if (await isLegacyRequest(request, body)) {
    // Progress notifications need a stream. Every other answer is one JSON body.
    const isStream = accepted.stream && (!accepted.json || wantsProgress(body))
    return await answerLegacy(create('legacy'), request, { body, isStream })
  }
  if (methodOf(body) === 'subscriptions/listen') return noSuchMethod(body)
  const responseMode = accepted.stream ? (accepted.json ? 'auto' : 'sse') : 'json'
  const handler = createMcpHandler(() => create('modern'), { legacy: 'reject', responseMode })
  return await handler.fetch(request, { parsedBody: body })
}

/**
 * The value of the revision header, if the servers do not support it. A handshake has its revision
 * in its body instead.
 */
function unknownRevision({ headers, body }: McpMessage): string | undefined {
  const revision = String(headers['mcp-protocol-version'] ?? '').trim()
  return revision === '' || REVISIONS.includes(revision) || methodOf(body) === 'initialize' ? undefined : revision
}

/**
 * Replaces the library's message, which takes every unknown revision for an early or a late
 * revision and demands what that revision needs.
 */
function refuseRevision(body: unknown, revision: string): Response {
  const requested = revision.slice(0, REPEATED_CHARACTERS_MAX)
  const message = `The header MCP-Protocol-Version names the revision ${requested}, which the gateway does not support. Send ${REVISIONS[0]}, or the revision in the answer to initialize.`
  const error = {
    code: ProtocolErrorCode.UnsupportedProtocolVersion,
    message,
    data: { supported: REVISIONS, requested },
  }
  return Response.json(errorTo(body, error), { status: 400 })
}

/** The answer with an error to a message that no method handles. */
function errorTo(body: unknown, error: MessageError): object {
  const { id } = Object(body)
  return { jsonrpc: '2.0', id: isId(id) ? id : null, error }
}

/**
 * An answer as JSON, or as a stream with this single message if the client accepts only streams.
 */
export function inAcceptedForm(answer: unknown, { json }: AcceptedForms): Response {
  if (json) return Response.json(answer)
  const headers = { 'content-type': 'text/event-stream' }
  return new Response(`event: message\ndata: ${JSON.stringify(answer)}\n\n`, { headers })
}

/**
 * Cancels the request that a notification names. The node that runs the tool of the request answers
 * the request.
 */
async function cancelRequest({ client }: McpDeps, message: unknown): Promise<void> {
  if (methodOf(message) !== 'notifications/cancelled') return
  const { requestId } = Object(Object(message).params)
  if (requestId !== undefined) await client.cancelRequest(requestId)
}

async function answerLegacy(
  server: Server,
  request: Request,
  { body, isStream }: { body: unknown; isStream: boolean },
): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !isStream })
  await server.connect(transport)
  const response = await transport.handleRequest(request, { parsedBody: body })
  if (response.headers.get('content-type')?.startsWith('text/event-stream') && response.body) {
    const end = new TransformStream({ flush: () => server.close() })
    return new Response(response.body.pipeThrough(end), response)
  }
  await server.close()
  return response
}

/** The forms of an answer that a client accepts. */
export interface AcceptedForms {
  json: boolean
  stream: boolean
}

/** It is enough if the header allows either form. */
export function acceptedForms(accept: string | undefined): AcceptedForms {
  return { json: acceptsType(accept, 'application/json'), stream: acceptsType(accept, 'text/event-stream') }
}

/** The library requires that both forms are accepted. Which form is sent is decided here. */
function toWebRequest({ baseUrl, client }: McpDeps, message: McpMessage): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(message.headers)) if (value !== undefined) headers.set(name, String(value))
  headers.set('accept', 'application/json, text/event-stream')
  return new Request(new URL(message.url, baseUrl), { method: 'POST', headers, signal: client.left })
}

function methodOf(body: unknown): unknown {
  return Object(body).method
}

function wantsProgress(body: unknown): boolean {
  return methodOf(body) === 'tools/call' && Object(Object(Object(body).params)._meta).progressToken !== undefined
}

/**
 * Refuses `subscriptions/listen`. The servers announce no changes of their lists, so there is
 * nothing to subscribe to, and no stream to keep open.
 */
function noSuchMethod(body: unknown): Response {
  const error = { code: ProtocolErrorCode.MethodNotFound, message: 'Method not found' }
  return Response.json(errorTo(body, error), { status: 404 })
}
