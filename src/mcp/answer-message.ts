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
import { allows } from '../http/request/accept.ts'
import { type MessageError, readMessage } from './read-message.ts'
import { createApiServer, createCatalogServer, type Era, type McpDeps } from './server.ts'

/** A message as it came over HTTP. */
export interface McpMessage {
  url: string
  headers: IncomingHttpHeaders
  /** Parsed. */
  body: unknown
}

/** In place of the protocol's own words, which ask for both forms. */
export const NOT_ACCEPTABLE = {
  jsonrpc: '2.0',
  id: null,
  error: { code: -32_000, message: 'Accept must allow application/json or text/event-stream.' },
}

/** The revisions of the protocol that the servers speak, the newest first. */
const REVISIONS = ['2026-07-28', ...SUPPORTED_PROTOCOL_VERSIONS]

/** Characters of a header that an error repeats. */
const REPEATED_CHARACTERS_MAX = 40

/** What the server of all APIs answers. */
export function answerCatalogMessage(deps: McpDeps, message: McpMessage): Promise<Response> {
  return answerMessage((era) => createCatalogServer(deps, era), deps, message)
}

/** What the server of chosen APIs answers. */
export function answerApiMessage(apis: Api[], deps: McpDeps, message: McpMessage): Promise<Response> {
  return answerMessage((era) => createApiServer(apis, deps, era), deps, message)
}

/** Gives the message to the protocol's own server, which lives as long as its answer takes. */
async function answerMessage(create: (era: Era) => Server, deps: McpDeps, given: McpMessage): Promise<Response> {
  const accepted = acceptedForms(given.headers.accept)
  if (!accepted.json && !accepted.stream) return Response.json(NOT_ACCEPTABLE, { status: 406 })
  const revision = unknownRevision(given)
  if (revision !== undefined) return refuseRevision(given.body, revision)
  const read = readMessage(given.body)
  if ('error' in read) return errorAnswer(given.body, read.error, accepted)
  const message = { url: given.url, headers: given.headers, body: read.message }
  const { body } = message
  await cancelCall(deps, body)
  const request = toWebRequest(deps, message)
  if (await isLegacyRequest(request, body)) {
    // Progress needs a stream; every other answer is one JSON body, as it always was.
    const isStream = accepted.stream && (!accepted.json || wantsProgress(body))
    return await answerLegacy(create('legacy'), request, { body, isStream })
  }
  if (methodOf(body) === 'subscriptions/listen') return noSuchMethod(body)
  const responseMode = accepted.stream ? (accepted.json ? 'auto' : 'sse') : 'json'
  const handler = createMcpHandler(() => create('modern'), { legacy: 'reject', responseMode })
  return await handler.fetch(request, { parsedBody: body })
}

/**
 * What the header of the revision says, if the servers do not speak it. A handshake says in its
 * body what its client speaks.
 */
function unknownRevision({ headers, body }: McpMessage): string | undefined {
  const revision = String(headers['mcp-protocol-version'] ?? '').trim()
  return revision === '' || REVISIONS.includes(revision) || methodOf(body) === 'initialize' ? undefined : revision
}

/**
 * In place of the protocol's own words, which take every unknown revision for an early or for a
 * late revision, and ask for what that revision needs.
 */
function refuseRevision(body: unknown, revision: string): Response {
  const requested = revision.slice(0, REPEATED_CHARACTERS_MAX)
  const message = `The header MCP-Protocol-Version names ${requested}, and there is no such revision here. Send ${REVISIONS[0]} or the revision that initialize answers.`
  const error = {
    code: ProtocolErrorCode.UnsupportedProtocolVersion,
    message,
    data: { supported: REVISIONS, requested },
  }
  return Response.json({ jsonrpc: '2.0', id: Object(body).id ?? null, error }, { status: 400 })
}

/** A message that no method answers. */
function errorAnswer(body: unknown, error: MessageError, accepted: AcceptedForms): Response {
  return inAcceptedForm({ jsonrpc: '2.0', id: Object(body).id ?? null, error }, accepted)
}

/** One answer as JSON; a client that takes streams alone gets a stream of this single answer. */
export function inAcceptedForm(answer: unknown, { json }: AcceptedForms): Response {
  if (json) return Response.json(answer)
  const headers = { 'content-type': 'text/event-stream' }
  return new Response(`event: message\ndata: ${JSON.stringify(answer)}\n\n`, { headers })
}

/**
 * Ends the call of a request that a notification cancels. The request itself is answered where it
 * is waited for.
 */
async function cancelCall({ client }: McpDeps, message: unknown): Promise<void> {
  if (methodOf(message) !== 'notifications/cancelled') return
  const callId = await client.toolCalls.find(Object(Object(message).params).requestId ?? null)
  if (callId !== undefined) await client.cancel(callId)
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

/** Which forms of an answer a client takes. */
export interface AcceptedForms {
  json: boolean
  stream: boolean
}

/** A header that allows one of the two forms is enough. */
export function acceptedForms(accept: string | undefined): AcceptedForms {
  return { json: allows(accept, 'application/json'), stream: allows(accept, 'text/event-stream') }
}

/** The protocol's own code wants both forms accepted; this code decides which form is sent. */
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
 * No list of ours changes while a node runs, so there is nothing to subscribe to, and no stream to
 * keep open.
 */
function noSuchMethod(body: unknown): Response {
  const error = { code: ProtocolErrorCode.MethodNotFound, message: 'Method not found' }
  return Response.json({ jsonrpc: '2.0', id: Object(body).id ?? null, error }, { status: 404 })
}
