import { Readable } from 'node:stream'

/**
 * An empty stream that answers HEAD in place of the stream that answers GET. Fastify would read the
 * stream of a HEAD to its end without sending it, so a client could make the node read a whole
 * export for nothing. The given stream is destroyed, so that code that waits for its end continues.
 */
function unreadStream(stream: Readable): Readable {
  stream.destroy()
  return Readable.from([])
}

/** The payload to send: for a HEAD request, streams are not read. */
export function payloadFor(method: string, payload: unknown): unknown {
  return method === 'HEAD' && payload instanceof Readable ? unreadStream(payload) : payload
}
