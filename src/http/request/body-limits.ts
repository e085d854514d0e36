import type { IncomingHttpHeaders } from 'node:http'

/** Largest body of a route without a limit of its own, bytes. */
export const BODY_BYTES_MAX = 16 * 1024

/** Largest body with credentials, bytes. Anybody can send such a body, and parsing costs time. */
export const CREDENTIALS_BYTES_MAX = 4 * 1024

/**
 * Largest body of a call, bytes. Most parameters become the request line of an upstream, which has
 * a few kilobytes.
 */
export const CALL_BYTES_MAX = 64 * 1024

/** Largest body of a batch of fifty calls, or of MCP messages, bytes. */
export const MESSAGES_BYTES_MAX = 512 * 1024

/** Bytes of a body or a stored result that count as one request of an account. */
const UNIT_BYTES = 64 * 1024

/** The number of requests as which a body of this size counts; at least 1. */
export function unitsOfBytes(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / UNIT_BYTES))
}

/**
 * The number of requests as which a body counts before it arrives. If its length is unknown, the
 * largest length, `bytesMax`, is assumed.
 */
export function unitsOfBody(headers: IncomingHttpHeaders, bytesMax: number): number {
  const length = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : bytesMax
  return unitsOfBytes(Math.min(length, bytesMax))
}

/** Whether a request has a body (RFC 9112, 6.3). */
export function bringsBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
