import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { firstSingleEndpoint } from './target.ts'

/** How the upstream answers from now on. */
export interface UpstreamPlay {
  bodyBytes: number
  delayMs: number
}

/**
 * A process that plays the upstreams. Below `/u/<slug>` it answers with the recorded example of the
 * upstream. On any other path it waits as long as `UpstreamPlay` says and then answers with a body
 * of the size that `UpstreamPlay` says, which is an answer of both `random-facts` and `weather`.
 */
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
  const weather = { latitude: 1, longitude: 2, current_weather: { time: '2026-01-01T00:00', temperature: 3 } }
  const room = bytes - Buffer.byteLength(JSON.stringify({ ...fact, ...weather }))
  const phrase = 'It is “true” that \\"ducks\\" say über. '
  return Buffer.from(JSON.stringify({ ...fact, ...weather, text: phrase.repeat(Math.ceil(room / 48)) }))
}

const examples = new Map<string, Buffer>()
for (const [slug, upstream] of await loadUpstreams()) {
  const endpoint = firstSingleEndpoint(upstream)?.endpoint
  if (endpoint) examples.set(slug, Buffer.from(JSON.stringify(endpoint.example.response)))
}

const server = createServer((request, response) => {
  const [, mark, slug = ''] = (request.url ?? '').split('/')
  const answer = (): void => {
    const bytes = (mark === 'u' && examples.get(slug)) || body
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes)
  }
  if (delayMs > 0) setTimeout(answer, delayMs)
  else answer()
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.({ listening: (server.address() as AddressInfo).port })
