import { Readable } from 'node:stream'

/**
 * An empty stream, which answers HEAD in place of the stream that answers GET. Fastify would read
 * that stream to its end and send nothing of it, so that a client without a body to take could make
 * the node read a whole export. The stream is destroyed, and whoever waits for its end hears of it.
 */
function unreadStream(stream: Readable): Readable {
  stream.destroy()
  return Readable.from([])
}

/** What answers a request instead of this payload: of a HEAD request no stream is read. */
export function payloadFor(method: string, payload: unknown): unknown {
  return method === 'HEAD' && payload instanceof Readable ? unreadStream(payload) : payload
}
