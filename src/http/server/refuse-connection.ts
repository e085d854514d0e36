import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import { STATUS_CODES } from '../../node-http.ts'
import { createId } from '../../queue/call-job.ts'
import { errorBody, isCallRoute } from '../answer/error-answer.ts'
import { TOO_MANY_PARTS } from './body-parts.ts'
import { recentBytes } from './pipeline.ts'
import { RecentBytes } from './recent-bytes.ts'

interface NewestRequest {
  request: FastifyRequest
  reply: FastifyReply
  /** The answer to the previous request, if it was not written when this request arrived. */
  before: ServerResponse | undefined
}

/**
 * The newest request of each connection. Bytes that the HTTP parser refuses may be the rest of its
 * body, or may follow it.
 */
const newest = new WeakMap<Socket, NewestRequest>()

/** Records a request whose head has arrived. */
export function noteRequest(request: FastifyRequest, reply: FastifyReply): void {
  const { socket } = request.raw
  const before = newest.get(socket)?.reply.raw
  newest.set(socket, { request, reply, before: before?.writableFinished ? undefined : before })
}

const CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}

/**
 * What the HTTP parser found wrong, in words for the author of the request. Other codes are
 * answered without a reason.
 */
const REASONS: Record<string, string> = {
  CONNECT: 'its method is only for proxies',
  HPE_INVALID_METHOD: 'its method is not an HTTP method',
  HPE_INVALID_URL: 'its address is not valid',
  HPE_INVALID_VERSION: 'its first line does not end with HTTP/1.0 or HTTP/1.1, CR and LF',
  HPE_INVALID_CONSTANT: 'its first line is not a method, an address without spaces (a space is %20) and a version',
  HPE_INVALID_HEADER_TOKEN: 'a header field contains a character that is not allowed',
  HPE_INVALID_CONTENT_LENGTH: 'Content-Length is not a whole number, or Transfer-Encoding is present too',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'Content-Length appears twice, or Transfer-Encoding is present too',
  HPE_INVALID_TRANSFER_ENCODING: 'Transfer-Encoding is not chunked, or Content-Length is present too',
  HPE_INVALID_CHUNK_SIZE: 'the size of a chunk is not a hexadecimal number',
  HPE_INVALID_EOF_STATE: 'it ends before it is complete',
  HPE_CR_EXPECTED: 'a line does not end with CR and LF',
  HPE_LF_EXPECTED: 'a line does not end with CR and LF',
  HPE_STRICT: 'a line does not end with CR and LF',
}

/** The refusal of bytes that the HTTP parser does not accept. */
function parserRefusal(cause: ParseError, socket: Socket): GatewayError {
  const code = isLongAddress(cause, socket) ? 'URI_TOO_LONG' : CODES[cause.code ?? '']
  if (code) return new GatewayError(code)
  if (cause.code === TOO_MANY_PARTS) {
    return new GatewayError('PAYLOAD_TOO_LARGE', {
      message: 'The body arrives in too many small chunks.',
      hint: 'Send the body with Content-Length, or in larger chunks',
    })
  }
  if (cause.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') {
    return new GatewayError('PAYLOAD_TOO_LARGE', {
      message: 'The extensions of the chunks are too long.',
      hint: 'Send chunks without extensions',
    })
  }
  if (cause.code === 'HPE_INVALID_URL' && /^Invalid char/i.test(cause.reason ?? '')) {
    return new GatewayError('INVALID_ENCODING', {
      message: 'The address contains characters that must be percent-encoded.',
      hint: 'Percent-encode the address as UTF-8: ü is %C3%BC, a space is %20',
    })
  }
  const reason = REASONS[cause.code ?? '']
  return new GatewayError('VALIDATION_ERROR', {
    message: `The request is not valid HTTP${reason === undefined ? '' : `: ${reason}`}.`,
    hint: 'Send the request with a library that writes HTTP/1.1',
  })
}

/**
 * Passes requests with an expectation to `checkHead`. Otherwise Node would answer 417 without a
 * body.
 */
export function takeExpectations(server: Server): void {
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/**
 * Refuses heads that the parser accepts although HTTP forbids them.
 * @throws GatewayError VALIDATION_ERROR
 */
export function checkHead({ raw, headers }: FastifyRequest): void {
  checkHost(raw)
  const { expect, 'transfer-encoding': coding } = headers
  if (expect !== undefined) checkExpectation(expect)
  if (coding !== undefined) checkTransferCoding(coding)
}

/** @throws GatewayError VALIDATION_ERROR for an unknown expectation (RFC 9110, 10.1.1) */
function checkExpectation(expect: string): void {
  if (/^100-continue$/i.test(expect.trim())) return
  throw new GatewayError('VALIDATION_ERROR', {
    message: 'The only value allowed for the header Expect is 100-continue.',
    hint: 'Send the request without Expect',
  })
}

/**
 * The parser accepts a list of codings that ends with chunked, but nothing decodes the codings
 * before it. The connection closes, because it is uncertain where the next request begins.
 *
 * @throws GatewayError VALIDATION_ERROR for any coding but chunked (RFC 9112, 6.1)
 */
function checkTransferCoding(coding: string): void {
  if (/^chunked$/i.test(coding.trim())) return
  throw new GatewayError('VALIDATION_ERROR', {
    endsConnection: true,
    message: `The request is not valid HTTP: ${REASONS.HPE_INVALID_TRANSFER_ENCODING}.`,
  })
}

/**
 * How long further data is read and discarded after a refusal, milliseconds. A reset would discard
 * the answer too.
 */
const LINGER_MS = 2_000

const refused = new WeakSet<Socket>()

/**
 * Answers bytes that are not an acceptable HTTP request, then closes. There may be no request
 * object, only a socket. Earlier requests get their answers first: for example, if a client counts
 * the characters of its body instead of the bytes, its request is good, and the rest of its body
 * looks like another request.
 */
export function refuseConnection(cause: Error & ParseError, socket: Socket, baseUrl: string): void {
  // The parser also refuses everything that follows the refused bytes.
  if (refused.has(socket)) return
  refused.add(socket)
  const last = newest.get(socket)
  const isArriving = last !== undefined && !last.request.raw.complete
  const earlier = isArriving ? last.before : last?.reply.raw
  const isAwaited = earlier !== undefined && !earlier.writableFinished && !earlier.destroyed
  // A caller that ends its side while an earlier answer is awaited has left, like a caller that
  // ends its side after a complete request.
  const hasLeft = cause.code === 'ECONNRESET' || (isAwaited && cause.code === 'HPE_INVALID_EOF_STATE')
  if (hasLeft) return void socket.destroy()
  const refuse = (): void => writeRefusal(cause, socket, { baseUrl, arriving: isArriving ? last : undefined })
  if (isAwaited) earlier.once('close', refuse)
  else refuse()
}

function writeRefusal(
  cause: Error & ParseError,
  socket: Socket,
  { baseUrl, arriving }: { baseUrl: string; arriving: NewestRequest | undefined },
): void {
  const answer = arriving?.reply.raw
  // In the middle of another answer, our answer would be read as a part of it.
  if (!socket.writable || (answer?.headersSent && !answer.writableEnded)) return void socket.destroy()
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  // The request had already been answered when its rest was refused.
  if (answer?.writableEnded) return void socket.end()
  const error = parserRefusal(cause, socket)
  const url = arriving?.request.url ?? addressOf(cause, socket)
  const body = JSON.stringify(errorBody(error, baseUrl, isCallRoute(url)))
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Connection: close',
    `X-Request-Id: ${arriving?.request.id ?? createId('req')}`,
    'Cache-Control: no-store',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** An address of at least this length is refused for its length, whatever else is wrong. */
export const URL_LENGTH_MAX = 8 * 1024

interface ParseError {
  code?: string
  /** The parser's own message. */
  reason?: string
  rawPacket?: unknown
}

/**
 * Node limits the request line and the header fields together. The bytes that have arrived show
 * which of the two is too long.
 */
function isLongAddress(cause: ParseError, socket: Socket): boolean {
  return cause.code === 'HPE_HEADER_OVERFLOW' && addressOf(cause, socket).length > URL_LENGTH_MAX
}

/**
 * The address in the bytes that could not be parsed, if they contain the request line. It decides
 * the form of the answer.
 */
function addressOf({ rawPacket }: ParseError, socket: Socket): string {
  const known = recentBytes(socket)
  if (known) return known.longestAddress
  const packet = new RecentBytes()
  if (Buffer.isBuffer(rawPacket)) packet.add(rawPacket)
  return packet.longestAddress
}

/**
 * Requires exactly one `Host` header (RFC 9112, 3.2), or at most one in HTTP/1.0. With two, a proxy
 * before us and the gateway could each use another host.
 *
 * @throws GatewayError VALIDATION_ERROR
 */
function checkHost({ rawHeaders, httpVersion }: IncomingMessage): void {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === 'host') count += 1
  }
  if (count === 1 || (count === 0 && httpVersion === '1.0')) return
  throw new GatewayError('VALIDATION_ERROR', { message: 'The request must have one Host header field.' })
}
