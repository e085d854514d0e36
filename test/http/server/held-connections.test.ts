import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterEach, describe, it } from 'node:test'
import { HeldBytes } from '../../../src/http/server/held-bytes.ts'
import { holdAnswer } from '../../../src/http/server/holding.ts'
import { boundPipelining } from '../../../src/http/server/pipeline.ts'
import { until } from '../../support/gateway.ts'

const MB = 1_000_000

/** What an open connection counts as if nothing arrives and nothing is sent. */
const IDLE_BYTES = 8 * 1_024

const GET = 'GET / HTTP/1.1\r\nHost: test\r\n\r\n'

describe('what a connection holds', () => {
  let server: Server | undefined
  const sockets: Socket[] = []
  let held: HeldBytes
  let port: number

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    server?.close()
    if (server?.listening) await once(server, 'close')
    // Whatever has happened, no bytes stay counted for the account.
    await until(() => held.total === 0)
  })

  async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<void> {
    held = new HeldBytes(80 * MB)
    server = createServer(answer)
    boundPipelining(server, held, () => false)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    port = (server.address() as AddressInfo).port
  }

  async function open(): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }

  const end = (request: IncomingMessage, response: ServerResponse, body: Buffer): void => {
    holdAnswer(request, response, body)
    response.end(body)
  }

  it('what a connection holds of answers that nobody reads stays below the limit of its client', async () => {
    let most = 0
    await listen((request, response) => {
      end(request, response, Buffer.alloc(4 * MB))
      most = Math.max(most, held.total)
    })
    const clients = await Promise.all(Array.from({ length: 20 }, open))
    for (const client of clients) client.pause().write(GET.repeat(8))
    await until(() => clients.some(({ destroyed }) => destroyed) || most > 12 * MB)
    await until(() => held.total < 10 * MB)
    assert.ok(most <= 10 * MB + 2 * 4 * MB, `${most} bytes were held`)
  })

  it('what a connection holds is nothing but itself when its answers were read', async () => {
    await listen((request, response) => {
      request.resume().once('end', () => end(request, response, Buffer.alloc(100_000)))
    })
    const client = await open()
    const body = 'x'.repeat(50_000)
    client.resume().write(GET.repeat(30))
    client.write(`POST / HTTP/1.1\r\nHost: test\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await until(() => client.bytesRead > 31 * 100_000)
    await until(() => held.total === IDLE_BYTES)
  })

  it('what a connection holds of a body in small chunks counts each chunk', async () => {
    await listen((request) => void request.on('data', () => undefined))
    const client = await open()
    client.write('POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.write('1\r\nx\r\n'.repeat(1_000))
    await until(() => held.total > 1_000 * 256)
  })

  it('what a connection holds is its body as far as it has arrived, and nothing of one that is thrown away', async () => {
    let arrived = 0
    await listen((request, response) => {
      if (request.url === '/refused') response.writeHead(401).end()
      else request.on('data', ({ length }) => (arrived += length))
    })
    const [slow, refused] = [await open(), await open()]
    slow.write(`POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n`)
    await until(() => held.total >= 3 * IDLE_BYTES)
    const before = held.total
    slow.write('x'.repeat(500_000))
    // Each chunk counts some bytes more than it has, and the system decides how many chunks arrive.
    await until(() => arrived === 500_000)
    const withSlow = held.total
    assert.ok(withSlow >= before + 500_000)
    refused.resume().write(`POST /refused HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n`)
    await once(refused, 'data')
    refused.write('x'.repeat(900_000))
    await until(() => held.total === withSlow)
  })

  it('what a connection holds of bodies that never arrive stays below the limit of its client', async () => {
    await listen((request) => void request.on('data', () => assert.ok(held.total < 12 * MB)))
    const clients = await Promise.all(Array.from({ length: 30 }, open))
    for (const client of clients)
      client.write(`POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000001\r\n\r\n${'x'.repeat(MB)}`)
    await until(() => clients.filter(({ destroyed }) => destroyed).length >= 20)
  })

  it('what a connection holds counts heads that do not end and requests behind eight that are not answered', async () => {
    await listen(() => undefined)
    const [head, requests] = [await open(), await open()]
    head.write(`GET / HTTP/1.1\r\nHost: test\r\nX-Long: ${'x'.repeat(10_000)}`)
    await until(() => held.total > 2 * IDLE_BYTES + 9_000)
    const before = held.total
    requests.write(GET.repeat(1_000))
    await until(() => held.total > before + 8 * IDLE_BYTES + 900 * GET.length)
  })

  it('what a connection holds of a stream is what the stream has buffered', async () => {
    const stream = new PassThrough()
    await listen((request, response) => {
      holdAnswer(request, response, stream)
      stream.pipe(response)
    })
    const client = await open()
    client.pause().write(GET)
    await until(() => held.total > 2 * IDLE_BYTES - 1)
    for (let count = 0; count < 9; count += 1) stream.write(Buffer.alloc(MB))
    held.sweep()
    assert.ok(held.total > 4 * MB, `${held.total} bytes`)
    client.resume()
    await until(() => {
      held.sweep()
      return held.total < MB
    })
    stream.end()
  })

  it('what a connection holds is given up while memory is short if its client reads nothing, not if it reads', async () => {
    await listen((request, response) => end(request, response, Buffer.alloc(45 * MB)))
    const [stalled, reading] = [await open(), await open()]
    stalled.pause().write(GET)
    await until(() => held.total > 45 * MB)
    // The first says how much the client has taken until then.
    for (let sweeps = 0; sweeps < 6; sweeps += 1) held.sweep()
    assert.ok(held.total < MB, `${held.total} bytes`)
    stalled.destroy()
    reading.pause().write(GET)
    await until(() => held.total > 45 * MB)
    // The system takes up to 10 MB ahead of the client, so a few bytes may not reach the server.
    for (let sweeps = 0; sweeps < 14; sweeps += 1) {
      const before = reading.bytesRead
      reading.resume()
      await until(() => reading.bytesRead > before + 3 * MB || held.total < MB)
      reading.pause()
      held.sweep()
    }
    reading.resume()
    await until(() => reading.bytesRead > 45 * MB)
  })
})
