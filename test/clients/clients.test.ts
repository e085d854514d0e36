import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, beforeEach, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { memoize } from '../../src/async/memoize.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { type ClientApi, clientApis } from '../../src/clients/client-api.ts'
import { pythonClient } from '../../src/clients/python-client.ts'
import { typescriptClient } from '../../src/clients/typescript-client.ts'

const run = promisify(execFile)

const GATEWAY = { baseUrl: 'http://gateway.test', callTimeoutMs: 30_000 }

/** One answer that the server must give. */
interface Scripted {
  status: number
  code?: string
  retryAfter?: number | string
  location?: string
  /** The body, which is sent unchanged. */
  body?: string
  /** Whether the connection ends before the body is whole. */
  isBroken?: boolean
}

/**
 * What arrives when a client calls, and what it makes of the answers: its data, or the code of its
 * failure.
 */
interface Outcome {
  when: string
  answers: Scripted[]
  result: unknown
  requests: number
}

const OK = { status: 200 }
const afterRetry = (when: string, answer: Scripted): Outcome => ({
  when,
  answers: [answer],
  result: { id: 1 },
  requests: 2,
})
const atOnce = (when: string, answer: Scripted, result: unknown): Outcome => ({
  when,
  answers: [answer],
  result,
  requests: 1,
})
const busy = (retryAfter: string): Scripted => ({ status: 429, code: 'RATE_LIMIT_EXCEEDED', retryAfter })

const OUTCOMES: Outcome[] = [
  afterRetry('the body of an answer breaks off', { ...OK, isBroken: true }),
  afterRetry('the body of a failure breaks off', { status: 503, isBroken: true }),
  afterRetry('a balancer has no words', { status: 502, body: '', retryAfter: '0' }),
  afterRetry('a proxy cannot reach the gateway', { status: 522, body: '<html></html>', retryAfter: '0' }),
  afterRetry('a proxy has too much to do', { status: 529, body: '', retryAfter: '0' }),
  atOnce('a proxy cannot do what the request demands', { status: 501, body: '' }, ['INVALID_ANSWER', null]),
  afterRetry('the wait has a fraction', busy('0.05')),
  afterRetry('the wait has nothing before its fraction', busy('.05')),
  afterRetry('the wait has blanks around it', busy(' 0 ')),
  afterRetry('the wait is a date that has passed', busy('Sun, 06 Nov 1994 08:49:37 GMT')),
  afterRetry('the wait is a date of RFC 850', busy('Sunday, 06-Nov-94 08:49:37 GMT')),
  afterRetry('the wait is a date of asctime', busy('Sun Nov  6 08:49:37 1994')),
  afterRetry('the wait cannot be read', busy('soon')),
  afterRetry('the wait is below zero', busy('-5')),
  atOnce('a date is too far ahead', busy('Fri, 01 Jan 2999 00:00:00 GMT'), ['RATE_LIMIT_EXCEEDED', 'later']),
  atOnce('the wait is longer than a number can be', busy('9'.repeat(400)), ['RATE_LIMIT_EXCEEDED', 'later']),
  atOnce('success lacks its data', { ...OK, body: '{"status":"success"}' }, ['INVALID_ANSWER', null]),
  atOnce('data are null', { ...OK, body: '{"status":"success","data":null}' }, null),
  atOnce('an answer is nested too deeply', { ...OK, body: '['.repeat(200_000) }, ['INVALID_ANSWER', null]),
  atOnce('an answer is no UTF-8', { status: 404, body: '\u0000\ufffd{' }, ['INVALID_ANSWER', null]),
]

const SESSION = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'
const ACCESS_TOKEN = 'q3Jx-0dKp_yZ8vQ2mN5bT7cL1wR4sF6gH9jE0uA3iXo'

/** What a program passes as its key, and what the gateway gets. */
const KEYS: { given: string; sent: { key?: string; bearer?: string } | { code: string } }[] = [
  { given: 'agw_test_0123456789', sent: { key: 'agw_test_0123456789' } },
  { given: ' agw_test_0123456789\n', sent: { key: 'agw_test_0123456789' } },
  { given: `agw_${'k'.repeat(39)}`, sent: { key: `agw_${'k'.repeat(39)}` } },
  { given: '"agw_test_0123456789"', sent: { key: '"agw_test_0123456789"' } },
  { given: 'undefined', sent: { key: 'undefined' } },
  { given: SESSION, sent: { bearer: SESSION } },
  { given: ACCESS_TOKEN, sent: { bearer: ACCESS_TOKEN } },
  { given: '', sent: { code: 'AUTH_REQUIRED' } },
  { given: ' \t\n', sent: { code: 'AUTH_REQUIRED' } },
  { given: 'agw_test_…', sent: { code: 'INVALID_API_KEY' } },
  { given: 'agw_test_1\nagw_test_2', sent: { code: 'INVALID_API_KEY' } },
  { given: 'agw_test_1 agw_test_2', sent: { code: 'INVALID_API_KEY' } },
]

/**
 * Makes a call for each line that it reads. If it started Python for each call, the starts would
 * cost more than all the calls.
 */
const PYTHON = `
import json, sys
from client import Gateway, GatewayError

for line in sys.stdin:
    base_url, key = json.loads(line)
    words, call_id = "", None
    try:
        outcome = Gateway(key, base_url=base_url, retry_wait_max=5).mock_data.posts(id=1)
    except GatewayError as error:
        wait = error.retry_after
        outcome = [error.code, "later" if wait is not None and wait > 1e6 else wait]
        words, call_id = str(error), error.call_id
    print(json.dumps([outcome, words, call_id]), flush=True)
`

describe('the clients in one file', () => {
  let server: Server
  let url: string
  let folder: string
  let script: Scripted[]
  let arrivals: { at: number; path: string; key: string | undefined; bearer: string | undefined }[]
  let apis: ClientApi[]

  before(async () => {
    server = createServer((request, response) => {
      arrivals.push({
        at: performance.now(),
        path: request.url ?? '',
        key: request.headers['x-api-key'] as string | undefined,
        bearer: request.headers.authorization?.replace('Bearer ', ''),
      })
      const { status, code, retryAfter, location, body: given, isBroken = false } = script.shift() ?? { status: 200 }
      const failure = { code, message: 'It failed.', hint: 'Wait.', docs: '' }
      const body = status === 200 ? { status: 'success', data: { id: 1 } } : { status: 'error', error: failure }
      response.writeHead(status, {
        'x-call-id': 'call_1',
        ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
        ...(location === undefined ? {} : { location }),
      })
      const text = given ?? JSON.stringify(body)
      if (isBroken) response.write(text.slice(0, 20), () => response.destroy())
      else response.end(text)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    folder = await mkdtemp(join(tmpdir(), 'agw-clients-'))
    apis = clientApis(await loadCatalog(new Map()))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'client.ts'), typescriptClient(apis, GATEWAY))
    await writeFile(join(folder, 'client.py'), pythonClient(apis, GATEWAY))
  })
  beforeEach(() => {
    script = []
    arrivals = []
  })
  after(async () => {
    server.close()
    await rm(folder, { recursive: true, force: true })
  })

  const hasPython = memoize(
    () => '',
    async () => (await run('python3', ['--version']).catch(() => undefined)) !== undefined,
  )

  let python: { child: ChildProcess; answers: AsyncIterator<string> } | undefined
  function startPython() {
    const child = spawn('python3', ['-c', PYTHON], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] })
    return { child, answers: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
  }
  after(() => python?.child.kill())

  /** The id of the call that the last error names. */
  let failedCallId: string | null | undefined

  /**
   * A call of each client: its data, or code and Retry-After of its failure, whose words never hold
   * the key.
   */
  const clients = {
    TypeScript: async (baseUrl = url, key = 'k'): Promise<unknown> => {
      const { Gateway, GatewayError } = await import(pathToFileURL(join(folder, 'client.ts')).href)
      try {
        return await new Gateway({ key, baseUrl, retryWaitMsMax: 5_000 }).mockData.posts({ id: 1 })
      } catch (error) {
        assert.ok(error instanceof GatewayError)
        if (key.length > 1) assert.ok(!String(error).includes(key.trim() || 'Gateway('))
        const { code, retryAfter = null, callId } = error as { code: string; retryAfter?: number; callId?: string }
        failedCallId = callId
        return [code, Number(retryAfter) > 1e6 ? 'later' : retryAfter]
      }
    },
    Python: async (baseUrl = url, key = 'k'): Promise<unknown> => {
      python ??= startPython()
      python.child.stdin?.write(`${JSON.stringify([baseUrl, key])}\n`)
      const { value = assert.fail('the client ended with an error of another kind') } = await python.answers.next()
      const [outcome, words, callId] = JSON.parse(value)
      failedCallId = callId
      if (key.length > 1) assert.ok(!words.includes(key.trim() || 'Gateway('))
      return outcome
    },
  }

  for (const [name, call] of Object.entries(clients)) {
    const skipWithoutPython = async (context: { skip: (reason: string) => void }): Promise<boolean> => {
      if (name !== 'Python' || (await hasPython())) return false
      context.skip('there is no python3 here')
      return true
    }

    it(`the clients in one file in ${name} waits as long as Retry-After says and calls again`, async (context) => {
      if (await skipWithoutPython(context)) return
      script = [{ status: 429, code: 'RATE_LIMIT_EXCEEDED', retryAfter: 1 }]
      assert.deepEqual(await call(), { id: 1 })
      const [first, second] = arrivals
      assert.equal(arrivals.length, 2)
      assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 990)
      assert.deepEqual([first?.path, first?.key], ['/v1/call/mock-data/posts?id=1', 'k'])
    })

    it(`the clients in one file in ${name} throws what no retry can mend, and what must wait too long, at once`, async (context) => {
      if (await skipWithoutPython(context)) return
      script = [{ status: 404, code: 'UPSTREAM_NOT_FOUND' }]
      assert.deepEqual(await call(), ['UPSTREAM_NOT_FOUND', null])
      assert.equal(failedCallId, 'call_1', 'the log of calls is searched by this id')
      script = [{ status: 429, code: 'MONTHLY_QUOTA_EXCEEDED', retryAfter: 86_400 }]
      assert.deepEqual(await call(), ['MONTHLY_QUOTA_EXCEEDED', 86_400])
      script = [{ status: 501, body: '<html>' }]
      assert.deepEqual(await call(), ['INVALID_ANSWER', null])
      assert.equal(arrivals.length, 3)
    })

    it(`the clients in one file in ${name} throws its own error for whatever else stands at the address`, async (context) => {
      if (await skipWithoutPython(context)) return
      const failure = { error: 'Not Found', code: 'NOT_FOUND', message: 'm', hint: 'h', docs: 'd' }
      script = [{ status: 404, body: JSON.stringify(failure) }]
      assert.deepEqual(await call(), ['NOT_FOUND', null])
      const strangers = ['{"error":"no route"}', '{"error":{"reason":"none"}}', '[]', 'null', '<html>', '{"data":{}}']
      for (const [index, body] of strangers.entries()) {
        script = [{ status: index % 2 === 0 ? 404 : 200, body }]
        assert.deepEqual(await call(), ['INVALID_ANSWER', null], body)
      }
    })

    it(`the clients in one file in ${name} calls again when a balancer answers, and follows no redirect with the key`, async (context) => {
      if (await skipWithoutPython(context)) return
      script = [
        { status: 503, retryAfter: 0, body: '<html>' },
        { status: 502, retryAfter: 0, body: '' },
      ]
      assert.deepEqual(await call(), { id: 1 })
      assert.equal(arrivals.length, 3)
      script = [{ status: 302, body: '', location: `${url}/elsewhere` }]
      assert.deepEqual(await call(), ['INVALID_ANSWER', null])
      assert.equal(arrivals.length, 4)
      const nobody = await call('http://127.0.0.1:1')
      assert.deepEqual(nobody, ['NO_ANSWER', null])
    })

    it(`the clients in one file in ${name} takes an address with a slash at its end`, async (context) => {
      if (await skipWithoutPython(context)) return
      assert.deepEqual(await call(`${url}/`), { id: 1 })
      assert.equal(arrivals[0]?.path, '/v1/call/mock-data/posts?id=1')
    })

    for (const { when, answers, result, requests } of OUTCOMES) {
      const what = requests === 1 ? 'ends a call at once' : 'calls again'
      it(`the client in one file in ${name} ${what} when ${when}`, async (context) => {
        if (await skipWithoutPython(context)) return
        script = [...answers]
        assert.deepEqual(await call(), result)
        assert.equal(arrivals.length, requests)
      })
    }

    it(`the client in one file in ${name} sends a key or a token as such, and throws its own error for none`, async (context) => {
      if (await skipWithoutPython(context)) return
      for (const { given, sent } of KEYS) {
        arrivals = []
        const result = await call(url, given)
        if ('code' in sent) assert.deepEqual([result, arrivals], [[sent.code, null], []], given)
        else assert.deepEqual([arrivals[0]?.key, arrivals[0]?.bearer], [sent.key, sent.bearer], given)
      }
    })
  }

  it('the clients in one file throw their own error when no key is given at all', async (context) => {
    const { Gateway, GatewayError } = await import(pathToFileURL(join(folder, 'client.ts')).href)
    for (const options of [undefined, {}, { key: null }, { key: 5 }]) {
      assert.throws(
        () => new Gateway(options),
        (error) => error instanceof GatewayError && (error as { code?: string }).code === 'AUTH_REQUIRED',
      )
    }
    if (!(await hasPython())) return context.skip('there is no python3 here')
    const program = `
from client import Gateway, GatewayError
for key in (None, 5, b"agw_test_1"):
    try:
        Gateway(key)
    except GatewayError as error:
        print(error.code, error.status)
`
    const { stdout } = await run('python3', ['-c', program], { cwd: folder })
    assert.equal(stdout, 'AUTH_REQUIRED 401\n'.repeat(3))
  })

  it('the clients in one file take an endpoint as the catalog writes it', async (context) => {
    const { Gateway } = await import(pathToFileURL(join(folder, 'client.ts')).href)
    await new Gateway({ key: 'k', baseUrl: url }).call('weather/current')
    await new Gateway({ key: 'k', baseUrl: url }).call('/weather//current')
    if (!(await hasPython())) return context.skip('there is no python3 here')
    const program = `
import sys
from client import Gateway
for endpoint in ("current", "/current"):
    Gateway("k", base_url=sys.argv[1]).call("weather", endpoint)
`
    await run('python3', ['-c', program, url], { cwd: folder })
    assert.deepEqual(new Set(arrivals.map(({ path }) => path)), new Set(['/v1/call/weather/current']))
    assert.equal(arrivals.length, 4)
  })

  it('the clients in one file leave a wait for a retry when the call is aborted', async () => {
    const { Gateway } = await import(pathToFileURL(join(folder, 'client.ts')).href)
    script = [{ status: 503, code: 'OVERLOADED', retryAfter: 60 }]
    const aborted = new AbortController()
    const call = new Gateway({ key: 'k', baseUrl: url }).weather.current(
      { latitude: 1, longitude: 2 },
      { signal: aborted.signal },
    )
    await once(server, 'request')
    aborted.abort(new Error('left'))
    await assert.rejects(call, /left|abort/i)
    assert.equal(arrivals.length, 1)
  })

  it('the clients in one file throw the reason for which an answer was aborted while it came', async () => {
    const { Gateway } = await import(pathToFileURL(join(folder, 'client.ts')).href)
    const aborted = new AbortController()
    const send = async () =>
      new Response(
        new ReadableStream({
          pull: async (controller) => {
            aborted.abort(new Error('left'))
            controller.error(aborted.signal.reason)
          },
        }),
      )
    const gateway = new Gateway({ key: 'k', baseUrl: url, fetch: send })
    const call = gateway.weather.current({ latitude: 1, longitude: 2 }, { signal: aborted.signal })
    await assert.rejects(call, /^Error: left$/)
    assert.match(await readFile(join(folder, 'client.ts'), 'utf8'), /\| 'INVALID_ANSWER'\n {2}\| 'NO_ANSWER'\n/)
  })

  it('the client in one file for Python waits longer than a call of this gateway may take', () => {
    assert.match(pythonClient(apis, { ...GATEWAY, callTimeoutMs: 60_000 }), /^ {8}timeout: float = 70\.0,$/m)
    assert.match(pythonClient(apis, GATEWAY), /^ {8}timeout: float = 40\.0,$/m)
  })

  it('the clients in one file know every endpoint of the catalog', async () => {
    const source = typescriptClient(apis, GATEWAY)
    const python = pythonClient(apis, GATEWAY)
    for (const { slug, endpoints } of apis) {
      for (const { path } of endpoints) {
        assert.ok(source.includes(`this.call("${slug}/${path}",`), slug + path)
        assert.ok(python.includes(`self._transport.call("${slug}", "${path}",`), slug + path)
      }
    }
  })
})
