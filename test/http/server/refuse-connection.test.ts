import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { HeldBytes } from '../../../src/http/server/held-bytes.ts'
import { boundPipelining } from '../../../src/http/server/pipeline.ts'
import { noteRequest, refuseConnection } from '../../../src/http/server/refuse-connection.ts'
import { until } from '../../support/gateway.ts'

const REQUEST_END = ' HTTP/1.1\r\nHost: test\r\n\r\n'

let app: FastifyInstance
let accepted: Socket | undefined

/** Answers `/slow`. */
const slow = new EventEmitter()

/** `/refused` is answered before its body, and `/slow` when the test says so. */
before(async () => {
  app = Fastify({
    http: { maxHeaderSize: 16 * 1024 },
    clientErrorHandler: (error, socket) => refuseConnection(error, socket as Socket, 'http://test'),
  })
  app.addContentTypeParser('*', async (_request: FastifyRequest, body: IncomingMessage) => {
    await once(body.resume(), 'end')
  })
  app.addHook('onRequest', async (request, reply) => noteRequest(request, reply))
  app.all('/refused', { onRequest: async (_request, reply) => await reply.send('refused') }, async () => 'ok')
  app.all('/slow', async () => {
    await once(slow, 'answer')
    return 'slow'
  })
  app.all('/*', async () => 'ok')
  boundPipelining(app.server, new HeldBytes(1e9), () => false)
  app.server.on('connection', (socket: Socket) => (accepted = socket))
  await app.listen({ port: 0, host: '127.0.0.1' })
})
after(() => {
  app.server.closeAllConnections()
  return app.close()
})

/**
 * Sends bytes, and the rest behind the first answer.
 *
 * @returns what came until the server ended the connection, which it must not reset
 */
async function answersTo(bytes: string, rest = ''): Promise<string> {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  let text = ''
  socket.on('data', (data) => (text += data))
  socket.once('data', () => socket.write(rest))
  socket.write(bytes)
  await once(socket, 'close')
  return text
}

describe('a request head that is too long', () => {
  /**
   * Sends each part as a packet of its own; resolves with the status of the last answer and its
   * code.
   */
  async function answerTo(parts: string[]): Promise<string> {
    const socket = connect({ port: (app.server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    let text = ''
    let sent = 0
    socket.setNoDelay(true).on('data', (data) => (text += data))
    // If the connection were reset, the answer would be lost.
    const ended = once(socket, 'end')
    for (const part of parts) {
      socket.write(part)
      sent += part.length
      await until(() => accepted?.bytesRead === sent, 5_000)
    }
    await ended
    socket.destroy()
    const status = text
      .match(/HTTP\/1\.1 \d+/g)
      ?.at(-1)
      ?.slice('HTTP/1.1 '.length)
    return `${status} ${/"code":"(\w+)"/.exec(text)?.[1]}`
  }

  const inPackets = (text: string, size: number): string[] =>
    text.match(new RegExp(`[^]{1,${size}}`, 'g'))?.map(String) ?? []

  for (const [length, size] of [
    [9_000, 4_000],
    [20_000, 1_000],
    [20_000, 200_000],
    [100_000, 10_000],
  ] as const) {
    // biome-ignore format: pairs
    it(`a request head that is too long is refused for its address of ${length} bytes in packets of ${size}`, async () => {
      const filler = length < 16_000 ? `X-Filler: ${'x'.repeat(16_000 - length)}\r\nX-Other: ${'x'.repeat(4_000)}` : ''
      const request = `GET /v1/call/x?q=${'x'.repeat(length)} HTTP/1.1\r\nHost: test\r\n${filler}\r\n\r\n`
      assert.equal(await answerTo(inPackets(request, size)), '414 URI_TOO_LONG')
    })
  }

  it('a request head that is too long is refused for its address behind other requests on its connection, with bodies and without', async () => {
    const long = `GET /${'x'.repeat(30_000)}${REQUEST_END}`
    const post = `POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nbody`
    assert.equal(await answerTo([`GET /${REQUEST_END}`, ...inPackets(long, 4_000)]), '414 URI_TOO_LONG')
    assert.equal(await answerTo([post, ...inPackets(long, 4_000)]), '414 URI_TOO_LONG')
  })

  it('a request head that is too long is refused for its header fields if the header fields are too long, however they arrive', async () => {
    for (const size of [4_000, 200_000]) {
      const request = `GET /short HTTP/1.1\r\nHost: test\r\nAuthorization: DPOP ${'x'.repeat(20_000)}\r\n\r\n`
      assert.equal(await answerTo(inPackets(request, size)), '431 HEADERS_TOO_LARGE', `${size}`)
    }
  })
})

describe('a body that comes in small parts', () => {
  const headOf = (path: string): string => `POST ${path} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n`
  const chunks = (count: number, bytes = 1): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count)

  it('a body that comes in small parts is refused, and the answer names the remedy', async () => {
    const text = await answersTo(headOf('/') + chunks(10_000))
    assert.match(text, /^HTTP\/1\.1 413 /)
    assert.match(text, /larger chunks/)
  })

  it('a body that comes in small parts behind its answer ends the connection, which leaves the answer to be read', async () => {
    const text = await answersTo(headOf('/refused'), chunks(200_000))
    assert.equal(text.match(/HTTP\/1\.1 \d+/g)?.join(), 'HTTP/1.1 200')
  })

  it('a body that comes in a thousand parts is taken, and in larger chunks it may have any length', async () => {
    const get = 'GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n'
    for (const body of [chunks(1_000), chunks(200, 8_000)])
      assert.equal((await answersTo(`${headOf('/')}${body}0\r\n\r\n${get}`)).match(/200 OK/g)?.length, 2)
  })
})

describe('bytes that are no request, behind a request that waits for its answer', () => {
  /** Sends `GET /slow` and what is behind it, and waits until all of it has arrived. */
  async function sendBehindSlow(behind: string): Promise<{ client: Socket; text: () => string }> {
    const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    let text = ''
    client.on('data', (data) => (text += data))
    const request = `GET /slow${REQUEST_END}${behind}`
    client.write(request)
    await until(() => slow.listenerCount('answer') === 1 && accepted?.bytesRead === request.length)
    return { client, text: () => text }
  }

  it('they are refused behind its answer, in whichever way they are wrong', async () => {
    for (const behind of [
      'POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      `GET /${REQUEST_END}xyz\r\n\r\n`,
      'the rest of a body that is longer than its Content-Length',
      'CONNECT api.example:443 HTTP/1.1\r\nHost: test\r\n\r\n',
    ]) {
      const { client, text } = await sendBehindSlow(behind)
      assert.equal(text(), '', behind)
      slow.emit('answer')
      await once(client, 'close')
      const [first, ...others] = text().split(/(?=HTTP\/1\.1 \d)/)
      assert.match(first ?? '', /^HTTP\/1\.1 200 OK.*slow$/s, behind)
      assert.match(others.at(-1) ?? '', /^HTTP\/1\.1 400 .*VALIDATION_ERROR/s, behind)
    }
  })

  it('a caller that ends its side in the middle of them has left', async () => {
    const { client, text } = await sendBehindSlow('POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nabc')
    client.end()
    await once(client, 'close')
    assert.equal(text(), '')
    slow.emit('answer')
  })
})

it('a CONNECT is refused, and its client may reset the connection', async () => {
  const { port } = app.server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  client.write('CONNECT api.example:443 HTTP/1.1\r\nHost: test\r\n\r\n')
  assert.match(String(await once(client, 'data')), /^HTTP\/1\.1 400 /)
  client.resetAndDestroy()
  await until(() => accepted?.closed === true)
})
