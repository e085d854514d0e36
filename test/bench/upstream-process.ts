import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the upstream answers from now on. */
export interface UpstreamPlay {
  bodyBytes: number
  delayMs: number
}

/** A process that plays the upstream: any path is answered with a fact as long as asked, after the asked delay. */
let body: Buffer = Buffer.alloc(0)
let delayMs = 0

process.on('message', (play: UpstreamPlay) => {
  body = factOf(play.bodyBytes)
  delayMs = play.delayMs
  process.send?.({ playing: play })
})
process.on('disconnect', () => process.exit(0))

/** JSON with quotes and characters outside ASCII, as real answers have them. */
function factOf(bytes: number): Buffer {
  const fact = { id: 'a'.repeat(32), text: '', source: 's', source_url: 'u', language: 'en', permalink: 'p' }
  const room = bytes - Buffer.byteLength(JSON.stringify(fact))
  const phrase = 'It is “true” that \\"ducks\\" say über. '
  return Buffer.from(JSON.stringify({ ...fact, text: phrase.repeat(Math.ceil(room / 48)) }))
}

const server = createServer((_request, response) => {
  const answer = (): void => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  }
  if (delayMs > 0) setTimeout(answer, delayMs)
  else answer()
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.({ listening: (server.address() as AddressInfo).port })
