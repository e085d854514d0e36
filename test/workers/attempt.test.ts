import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Agent, buildConnector } from 'undici'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { attempt, EndedUnsentError, StalePermitError } from '../../workers/upstream/attempt.ts'

const catalog = await loadCatalog(new Map())
const api = catalog.get('mock-data') ?? assert.fail()
const ready = buildConnector({})

async function serve(t: TestContext, listener: RequestListener) {
  const seen = { connections: 0, requests: 0 }
  const server = createServer((request, response) => {
    seen.requests += 1
    listener(request, response)
  })
  server.on('connection', () => (seen.connections += 1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new Agent({ connections: 1, connect: ready })
  t.after(async () => {
    await client.destroy()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const request = { url: new URL(`http://127.0.0.1:${port}/`), headers: {}, key: undefined }
  const progress: { isSent?: boolean } = {}
  const ask = (isFresh = true, signal = new AbortController().signal) => {
    const permit = {
      id: '',
      hasWaited: false,
      isFresh: () => isFresh,
      release: () => undefined,
      releaseUnused: () => undefined,
    }
    return attempt(api, request, { client, permit, progress, signal, timeoutMs: 10_000 })
  }
  return { seen, progress, ask }
}

test('a connection that was ready too late for one permit serves the next: slow to connect is not never', async (t) => {
  const { seen, ask } = await serve(t, (_request, response) => response.end('{}'))
  for (let index = 0; index < 3; index += 1) await assert.rejects(ask(false), StalePermitError)
  assert.equal((await ask()).answer.status, 200)
  assert.deepEqual(seen, { connections: 1, requests: 1 })
})

test('a call that ends before its connection is ready sent nothing, and one that ends later may have', async (t) => {
  const { seen, progress, ask } = await serve(t, () => undefined)
  const left = new AbortController()
  const unsent = ask(true, left.signal)
  left.abort('caller left')
  await assert.rejects(unsent, (error) => error instanceof EndedUnsentError && error.cause === 'caller left')
  assert.equal(progress.isSent, undefined)
  const leaves = new AbortController()
  const sent = ask(true, leaves.signal)
  sent.catch(() => undefined)
  while (seen.requests === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  leaves.abort('caller left')
  await assert.rejects(sent, (reason) => reason === 'caller left')
  assert.equal(seen.requests, 1)
  assert.equal(progress.isSent, true)
})

for (const [what, listener] of Object.entries<RequestListener>({
  'ends in the middle': (_request, response) => {
    response.writeHead(429, { 'retry-after': '3600', 'content-length': '100' })
    response.write('{', () => response.destroy())
  },
  'is not what its encoding says': (_request, response) => {
    response.writeHead(429, { 'retry-after': '3600', 'content-encoding': 'gzip' }).end('too many')
  },
  'is larger than we take': (_request, response) => {
    response.writeHead(429, { 'retry-after': '3600' }).end('x'.repeat(3 * 1024 * 1024))
  },
})) {
  test(`a refusal is honoured whose body ${what}`, async (t) => {
    const { answer } = await (await serve(t, listener)).ask()
    assert.deepEqual([answer.status, answer.headers['retry-after'], answer.body], [429, '3600', undefined])
  })
}
