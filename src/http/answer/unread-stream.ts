import { Readable } from 'node:stream'

/**
 * What answers HEAD in place of a stream. Fastify reads the stream of such an answer to its end,
 * for nobody: a client would make the node read a whole export, and pay with a request that has no
 * body to take. The stream is destroyed, and whoever waits for its end hears of it.
 */
export function unreadStream(stream: Readable): Readable {
  stream.destroy()
  return Readable.from([])
}
