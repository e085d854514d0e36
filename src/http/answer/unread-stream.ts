import { Readable } from 'node:stream'

/**
 * The payload of the answer to a HEAD request: an empty stream in place of the stream that answers
 * GET. Fastify would read the stream of a HEAD to its end without sending it, so a client could
 * make the node read a whole export for nothing. The given stream is destroyed, so that code that
 * waits for its end continues.
 */
export function unread(payload: unknown): unknown {
  if (!(payload instanceof Readable)) return payload
  payload.destroy()
  return Readable.from([])
}
