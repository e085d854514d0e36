import type { IncomingHttpHeaders } from 'node:http'

/** Largest body of a route that does not say how much it needs, bytes. */
export const BODY_BYTES_MAX = 16 * 1024

/**
 * Largest body that holds credentials, bytes. Parsing costs time, and anybody can send such a body.
 */
export const CREDENTIALS_BYTES_MAX = 4 * 1024

/**
 * Largest body of a call, bytes. Its parameters become a request line of an upstream, which is a
 * few kilobytes.
 */
export const CALL_BYTES_MAX = 64 * 1024

/** Largest body of a batch of fifty calls, or of messages of the Model Context Protocol, bytes. */
export const MESSAGES_BYTES_MAX = 512 * 1024

/** Bytes of a body, or of a stored result, that count as one request of an account. */
const UNIT_BYTES = 64 * 1024

/** The requests that so many bytes count as; at least one. */
export function unitsOfBytes(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / UNIT_BYTES))
}

/**
 * The requests that a body counts as before it arrives. A body of unknown length counts as the
 * largest, `bytesMax`.
 */
export function unitsOfBody(headers: IncomingHttpHeaders, bytesMax: number): number {
  const length = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : bytesMax
  return unitsOfBytes(Math.min(length, bytesMax))
}

/** Whether a body follows a request's head (RFC 9112, 6.3). */
export function bringsBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
