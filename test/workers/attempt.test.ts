import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, buildConnector } from 'undici'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { EndedUnsentError, reachOfFailed, StalePermitError } from '../../workers/errors/attempt-error.ts'
import { AnswerMemory, MemoryShare } from '../../workers/upstream/answer-memory.ts'
import { attempt } from '../../workers/upstream/attempt.ts'
import { describeFailure } from '../../workers/upstream/failure-words.ts'
import type { CallProgress } from '../../workers/upstream/outcome.ts'

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
  const request = { origin: `http://127.0.0.1:${port}`, path: '/', headers: {}, key: undefined }
  const progress: CallProgress = { reach: 'unsent' }
  const ask = (isFresh = true, signal = new AbortController().signal, memory?: MemoryShare, timeoutMs = 10_000) => {
    const permit = {
      id: '',
      hasWaited: false,
      isFresh: () => isFresh,
      release: () => undefined,
      giveBack: () => undefined,
    }
    return attempt(api, request, { client, permit, progress, signal, timeoutMs, memory })
  }
  return { seen, progress, ask, stop: () => server.close() }
}

test('a connection that is ready too late for a permit serves the next permit', async (t) => {
  const { seen, ask } = await serve(t, (_request, response) => response.end('{}'))
  for (let index = 0; index < 3; index += 1) await assert.rejects(ask(false), StalePermitError)
  assert.equal((await ask()).answer.status, 200)
  assert.deepEqual(seen, { connections: 1, requests: 1 })
})

test('a call that ends before its connection is ready has sent nothing, and a call that ends later may have sent its request', async (t) => {
  const { seen, progress, ask } = await serve(t, () => undefined)
  const left = new AbortController()
  const unsent = ask(true, left.signal)
  left.abort('caller left')
  await assert.rejects(unsent, (error) => error instanceof EndedUnsentError && error.cause === 'caller left')
  assert.equal(progress.reach, 'unsent')
  const leaves = new AbortController()
  const sent = ask(true, leaves.signal)
  sent.catch(() => undefined)
  while (seen.requests === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  leaves.abort('caller left')
  await assert.rejects(sent, (reason) => reason === 'caller left')
  assert.equal(seen.requests, 1)
  assert.equal(progress.reach, 'sent')
})

test('an attempt counts as unsent if its connection is refused or takes too long, and as sent if its answer is lost', async (t) => {
  const { ask, stop } = await serve(t, (request) => void request.socket.destroy())
  const reachOfAttempt = (timeoutMs?: number) =>
    ask(true, undefined, undefined, timeoutMs).then(() => assert.fail('it was answered'), reachOfFailed)
  assert.equal(await reachOfAttempt(), 'sent')
  stop()
  assert.equal(await reachOfAttempt(), 'unsent')
})

test('the failure of an attempt that takes too long says whether it lacked a connection or an answer', async (t) => {
  const wordsOf = async (attempted: Promise<unknown>) => {
    const error = await attempted.then(
      () => assert.fail('it was answered'),
      (error: unknown) => error,
    )
    return describeFailure('UPSTREAM_TIMEOUT', { error, ms: 50 })
  }
  const { seen, ask } = await serve(t, (_request, response) => {
    if (seen.requests === 1) response.end('{}')
  })
  // The connection is open from here on.
  await ask()
  const open = new AbortController()
  assert.deepEqual(await wordsOf(ask(true, open.signal, undefined, 50)), {
    words: 'no answer in time after 50 ms',
    isNetwork: false,
  })
  // The attempt that is under way has the only connection.
  const held = new AbortController()
  const underWay = ask(true, held.signal)
  underWay.catch(() => undefined)
  assert.deepEqual(await wordsOf(ask(true, open.signal, undefined, 50)), {
    words: 'no connection in time',
    isNetwork: true,
  })
  held.abort('over')
  await assert.rejects(underWay)
})

test('the message about a failed answer has its status and time together, and then what is wrong with it', () => {
  const wordsOf = (code: string, status: number) => describeFailure(code, { status, ms: 3 }).words
  assert.equal(wordsOf('UPSTREAM_ERROR', 500), 'HTTP 500 in 3 ms')
  assert.equal(wordsOf('UPSTREAM_INVALID_RESPONSE', 200), 'HTTP 200 in 3 ms, not in the expected form')
  assert.equal(wordsOf('UPSTREAM_REDIRECT_BLOCKED', 302), 'HTTP 302 in 3 ms, a redirect that is not followed')
})

const LARGE = JSON.stringify('x'.repeat(1_000_000))

/** Memory that one call holds, which began first. Other calls get none until it ends. */
function heldMemory() {
  const memory = new AnswerMemory(0)
  const holding = new MemoryShare(memory)
  holding.take(1, new AbortController().signal)
  const waiting = Promise.withResolvers<void>()
  const within = async <T>(run: (share: MemoryShare) => Promise<T>): Promise<T> => {
    const share = new MemoryShare(memory)
    const take = share.take.bind(share)
    share.take = (bytes, signal) => {
      const taking = take(bytes, signal)
      if (taking) waiting.resolve()
      return taking
    }
    return await run(share).finally(() => share.giveBack())
  }
  return { within, isWaiting: waiting.promise, giveBack: () => holding.giveBack() }
}

test('a large answer is read on when there is memory, and its wait does not count for the time limit of the upstream', async (t) => {
  const { ask } = await serve(t, (_request, response) => response.end(LARGE))
  const { within, isWaiting, giveBack } = heldMemory()
  const timeoutMs = 2_000
  const asked = within((memory) => ask(true, new AbortController().signal, memory, timeoutMs))
  await isWaiting
  await Promise.race([delay(timeoutMs + 1), asked])
  giveBack()
  assert.equal((await asked).text, LARGE)
})

test('a call that ends while its answer waits for memory ends this wait', async (t) => {
  const { ask } = await serve(t, (_request, response) => response.end(LARGE))
  const { within, isWaiting, giveBack } = heldMemory()
  const left = new AbortController()
  const asked = within((memory) => ask(true, left.signal, memory))
  await isWaiting
  left.abort('caller left')
  await assert.rejects(asked, (reason) => reason === 'caller left')
  giveBack()
})

test('an attempt fails if the upstream closes the connection while the answer waits for memory', async (t) => {
  const { ask } = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': LARGE.length + 1 })
    response.end(LARGE, () => response.destroy())
  })
  const { within, isWaiting, giveBack } = heldMemory()
  const asked = within((memory) => ask(true, new AbortController().signal, memory))
  const failed = assert.rejects(asked, { code: 'UPSTREAM_ERROR' })
  await isWaiting
  giveBack()
  await failed
})

test('the wait of a failed answer does not count for the next attempt', async (t) => {
  const { ask } = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': LARGE.length })
    response.write(LARGE.slice(0, 100_000))
    void isWaiting.then(() => response.destroy())
  })
  const { within, isWaiting, giveBack } = heldMemory()
  await within(async (memory) => {
    await assert.rejects(ask(true, new AbortController().signal, memory), { code: 'UPSTREAM_ERROR' })
    const waited = memory.waitedMs
    await delay(20)
    assert.equal(memory.waitedMs, waited)
  })
  giveBack()
})

test('a small answer does not wait for memory', async (t) => {
  const { ask } = await serve(t, (_request, response) => response.end('{}'))
  const { within, giveBack } = heldMemory()
  const { answer } = await within((memory) => ask(true, new AbortController().signal, memory))
  assert.deepEqual(answer.body, {})
  giveBack()
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
