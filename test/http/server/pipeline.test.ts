import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { HeldBytes } from '../../../src/http/server/held-bytes.ts'
import { boundPipelining } from '../../../src/http/server/pipeline.ts'
import { until } from '../../support/gateway.ts'

/** Bursts of requests on one connection. */
const BURSTS = 60

let server: Server | undefined
let client: Socket | undefined

afterEach(close)

async function close(): Promise<void> {
  client?.destroy()
  if (!server?.listening) return
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Socket> {
  server = createServer(answer)
  boundPipelining(server, new HeldBytes(1e9), () => false)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(client, 'connect')
  return client
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`

/**
 * Bursts of requests from a client that now and then reads nothing. The node answers some at once
 * and some later.
 */
async function sendInFitsAndStarts(answerBytes: number): Promise<void> {
  let handled = 0
  const socket = await listen((_request, response) => {
    handled += 1
    const answer = () => response.end(Buffer.alloc(answerBytes))
    if (handled % 3 === 0) answer()
    else if (handled % 3 === 1) setImmediate(answer)
    else setTimeout(answer, handled % 5)
  })
  let reads = 0
  socket.on('data', () => {
    reads += 1
    if (reads % 5 > 0) return
    socket.pause()
    setTimeout(() => socket.resume(), reads % 6)
  })
  for (let burst = 0; burst < BURSTS; burst += 1) {
    socket.write(get('/').repeat(1 + ((burst * 7) % 30)))
    // Whether or not the client has read answers by then.
    await sleep((burst * 3) % 10)
  }
  await close()
}

describe('requests that are sent behind each other', () => {
  it('requests that are sent behind each other are answered in order, and no more than eight of a connection are under way', async () => {
    let underWay = 0
    let most = 0
    const socket = await listen((request, response) => {
      underWay += 1
      most = Math.max(most, underWay)
      response.on('close', () => {
        underWay -= 1
      })
      setImmediate(() => response.end(`${request.url};`))
    })
    const paths = Array.from({ length: 500 }, (_, index) => `/${index}`)
    let text = ''
    socket.on('data', (data) => {
      text += data
    })
    socket.write(paths.map(get).join(''))
    await until(() => text.includes('/499;'), 10_000)
    assert.deepEqual(
      text.match(/\/\d+;/g),
      paths.map((path) => `${path};`),
    )
    assert.equal(most, 8)
  })

  it('requests that are sent behind each other may all wait for the end of their connection without a warning', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    try {
      const waiting: ServerResponse[] = []
      const socket = await listen((request, response) => {
        for (let time = 0; time < 2; time += 1) request.socket.once('close', () => undefined)
        waiting.push(response)
      })
      socket.write(Array.from({ length: 8 }, (_, index) => get(`/${index}`)).join(''))
      await until(() => waiting.length === 8)
      // Warnings are emitted in the next tick.
      await new Promise(setImmediate)
      assert.deepEqual(warnings, [])
    } finally {
      process.off('warning', onWarning)
    }
  })

  it('requests that are sent behind each other are not read while their answers are not taken', async () => {
    let handled = 0
    const socket = await listen((_request, response) => {
      handled += 1
      response.end(Buffer.alloc(4 * 1024 * 1024))
    })
    socket.pause()
    socket.write(get('/').repeat(1_000))
    await until(() => handled > 0)
    let before: number
    do {
      before = handled
      await new Promise((resolve) => setTimeout(resolve, 100))
    } while (handled !== before)
    assert.ok(handled <= 9, `${handled} requests were handled`)
  })

  it('requests that are sent behind each other do not harm the server if the client reads their answers irregularly', async () => {
    const failures: unknown[] = []
    const onFailure = (error: unknown) => failures.push(error)
    process.on('uncaughtException', onFailure)
    try {
      for (const bytes of [1_000, 100_000, 1_000, 100_000]) await sendInFitsAndStarts(bytes)
    } finally {
      process.off('uncaughtException', onFailure)
    }
    assert.deepEqual(failures, [])
  })

  it('requests that are sent behind each other keep their bodies whole, even if they look like ends of headers', async () => {
    const bodies: string[] = []
    const socket = await listen(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      bodies.push(body)
      response.end()
    })
    const sent = Array.from({ length: 30 }, (_, index) => `${index}${'\r\n\r\n'.repeat(index * 700)}end`)
    const requests = sent.map(
      (body) => `POST / HTTP/1.1\r\nHost: test\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    socket.resume()
    socket.write(requests.join(''))
    await until(() => bodies.length === sent.length, 10_000)
    assert.deepEqual(bodies, sent)
  })

  it('requests that are sent behind each other on many connections leave the next turn to another client', async () => {
    const turns: number[] = []
    let turn = 0
    const count = (): void => {
      turn += 1
      if (turns.length < 1_601) setImmediate(count)
    }
    await listen((_request, response) => {
      turns.push(turn)
      response.end()
    })
    const port = client?.remotePort ?? 0
    const flood = Array.from({ length: 200 }, () => connect(port, '127.0.0.1').resume())
    await Promise.all(flood.map((socket) => once(socket, 'connect')))
    setImmediate(count)
    for (const socket of flood) socket.write(get('/').repeat(8))
    client?.resume().write(get('/'))
    await until(() => turns.length === 1_601)
    for (const socket of flood) socket.destroy()
    const byTurn = Map.groupBy<number, number>(turns, (at) => at)
    const inOneTurn = Math.max(...[...byTurn.values()].map((begun) => begun.length))
    assert.ok(inOneTurn <= 2 * 128 + 8, `${inOneTurn} requests were begun in one turn`)
  })
})
