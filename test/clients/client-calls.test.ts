import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { pascal } from '../../src/catalog/type-name.ts'
import { type ClientApi, clientApis } from '../../src/clients/client-api.ts'
import { npmPackage, type PackageFiles, pypiPackage } from '../../src/clients/packages.ts'
import { pythonClient } from '../../src/clients/python-client.ts'
import { typescriptClient } from '../../src/clients/typescript-client.ts'
import { snippets } from '../../src/portal/assets/snippets.js'

const run = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')
const ID = 'call_0b5b8d0c6f3a4a5e9f1d2c3b4a596877'
const GATEWAY = { baseUrl: 'http://gateway.test', callTimeoutMs: 30_000 }

/** What the scripted server does with a request. It answers, or it breaks the connection. */
type Reply = { status: number; body?: unknown; headers?: Record<string, string> } | 'break' | 'hang' | 'drip'

const BATCH = {
  results: [{ index: 0, status: 200, data: {} }],
  done: true,
  ok: 1,
  failed: 0,
  charged: 1,
  deduplicated: 0,
}
/** The calls of a program that cancels the first of them. */
const CANCELLED = ['first', 'second', 'third'].map((name) => `/v1/call/mock-data/${name}`)
const DATA: Reply & object = { status: 200, body: { status: 'success', data: { id: 1 } } }
const failure = (code: string) => ({ status: 'error', error: { code, message: 'm', hint: 'h', docs: 'd' } })

/** One program for both kinds of Python client. It prints the result of each of its parts. */
const PYTHON = `
import asyncio, json, sys
from client import AsyncGateway, Gateway, GatewayError

url, what = sys.argv[1:]
metas, waits = [], []
options = {"base_url": url, "retry_wait_max": 5, "retries_max": 1, "timeout": float("inf"), "on_answer": metas.append, "on_retry": lambda error, wait, retries: waits.append(error.code)}

def outcome(run):
    try:
        return run()
    except GatewayError as error:
        return str(error) if what in ("timeout", "no time") else error.code

def sync():
    gateway = Gateway("k", **options)
    if what == "answer":
        meta = gateway.answer("mock-data", "posts", {"id": [1, None]}).meta
        return [meta.request_id, meta.call_id, meta.is_test, meta.cache, meta.rate_limit]
    if what == "batch":
        return gateway.batch([{"api": "weather", "endpoint": "current", "ref": "a"}], take="fit")["ok"]
    if what == "start":
        return gateway.start("mock-data", "posts", {"id": 1}).result()
    if what == "write":
        return gateway.answer("stock", "/add", {"id": 1}).data
    if what == "long":
        return gateway.answer("stock", "/add", {"id": 2**63 - 1, "in": [{"n": -(2**53)}], "small": 7, "is": True}).data
    if what == "start write":
        return gateway.start("stock", "add", {"id": 1}).id
    if what == "write anew":
        return gateway.stock.put(id=1)
    if what == "cancel":
        return gateway.start("mock-data", "posts", {"id": 1}).cancel()
    if what == "no time":
        return Gateway("k", base_url=url, timeout=0, retries_max=0).mock_data.posts(id=1)
    if what == "timeout":
        return Gateway("k", base_url=url, timeout=0.05, retries_max=0).mock_data.posts(id=1)
    return gateway.call("mock-data", "posts", {"id": 1}, method="POST", once=True)

async def asynchronous():
    async with AsyncGateway("k", **options) as gateway:
        if what == "answer":
            meta = (await gateway.answer("mock-data", "posts", {"id": [1, None]})).meta
            return [meta.request_id, meta.call_id, meta.is_test, meta.cache, meta.rate_limit]
        if what == "batch":
            return (await gateway.batch([{"api": "weather", "endpoint": "current", "ref": "a"}], take="fit"))["ok"]
        if what == "start":
            return await (await gateway.start("mock-data", "posts", {"id": 1})).result()
        if what == "write":
            return (await gateway.answer("stock", "/add", {"id": 1})).data
        if what == "long":
            return (await gateway.answer("stock", "/add", {"id": 2**63 - 1, "in": [{"n": -(2**53)}], "small": 7, "is": True})).data
        if what == "start write":
            return (await gateway.start("stock", "add", {"id": 1})).id
        if what == "write anew":
            return await gateway.stock.put(id=1)
        if what == "cancel":
            # The server answers the second call when the first call is there, and the third call
            # when the connection of the first call is closed.
            first = asyncio.ensure_future(gateway.call("mock-data", "first"))
            await gateway.call("mock-data", "second")
            first.cancel()
            await gateway.call("mock-data", "third")
            return await (await gateway.start("mock-data", "posts", {"id": 1})).cancel()
        if what == "no time":
            async with AsyncGateway("k", base_url=url, timeout=0, retries_max=0) as hasty:
                return await hasty.mock_data.posts(id=1)
        if what == "timeout":
            async with AsyncGateway("k", base_url=url, timeout=0.05, retries_max=0) as impatient:
                return await impatient.mock_data.posts(id=1)
        return await gateway.call("mock-data", "posts", {"id": 1}, method="POST", once=True)

print(json.dumps([outcome(sync), len(waits), outcome(lambda: asyncio.run(asynchronous())), len(waits)]))
`

describe('the clients', () => {
  let server: Server
  let url: string
  let folder: string
  let apis: ClientApi[]
  let script: Reply[]
  const steps = { there: Promise.withResolvers<void>(), closed: Promise.withResolvers<void>() }
  let requests: { method: string; path: string; prefer: string | undefined; body: string }[]

  before(async () => {
    server = createServer((request: IncomingMessage, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', (): void => {
        const { method = '', url: path = '', headers } = request
        const call = CANCELLED.indexOf(path)
        if (call >= 0) {
          if (call === 0) steps.there.resolve()
          if (call === 0) response.on('close', steps.closed.resolve)
          else
            void (call === 1 ? steps.there : steps.closed).promise.then(() => response.end(JSON.stringify(DATA.body)))
          return
        }
        requests.push({
          method,
          path,
          prefer: headers.prefer as string | undefined,
          body: String(Buffer.concat(chunks)),
        })
        const reply = script.shift() ?? DATA
        if (reply === 'hang') return
        if (reply === 'drip') {
          // An answer that never ends, although bytes arrive all the time.
          response.writeHead(200)
          const drops = setInterval(() => response.write(' '), 10)
          response.on('close', () => clearInterval(drops))
          return
        }
        if (reply === 'break') {
          request.socket.destroy()
          return
        }
        response.writeHead(reply.status, reply.headers).end(reply.body === undefined ? '' : JSON.stringify(reply.body))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    apis = clientApis(await loadCatalog(new Map()))
    folder = await mkdtemp(join(tmpdir(), 'agw-client-calls-'))
    const all = [...apis, stock(apis.find(({ slug }) => slug === 'mock-data') ?? assert.fail())]
    await writeFile(join(folder, 'client.ts'), typescriptClient(all, GATEWAY))
    await writeFile(join(folder, 'client.py'), pythonClient(all, GATEWAY))
  })
  beforeEach(() => {
    script = []
    requests = []
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true, force: true })
  })

  const isThere = (program: string) =>
    run(program, ['--version']).then(
      () => true,
      () => false,
    )

  interface Outcome {
    result: unknown
    waits: number
  }

  /** The result of a part of the program in TypeScript. */
  async function inTypescript(what: string, baseUrl: string): Promise<Outcome> {
    const { Gateway } = await import(pathToFileURL(join(folder, 'client.ts')).href)
    let waits = 0
    const onRetry = () => {
      waits += 1
    }
    const gateway = new Gateway({
      key: 'k',
      baseUrl,
      retryWaitMsMax: 5_000,
      retriesMax: 1,
      timeoutMs: Infinity,
      onRetry,
    })
    const impatient = new Gateway({ key: 'k', baseUrl, timeoutMs: 50, retriesMax: 0 })
    const parts: Record<string, () => Promise<unknown>> = {
      answer: async () => {
        const { meta } = await gateway.answer('mock-data/posts', { id: [1, null] })
        return [meta.requestId, meta.callId, meta.isTest, meta.cache, meta.rateLimit]
      },
      batch: async () => (await gateway.batch([{ api: 'weather', endpoint: 'current', ref: 'a' }], { take: 'fit' })).ok,
      start: async () => await (await gateway.start('mock-data/posts', { id: 1 })).result(),
      write: async () => (await gateway.answer('stock//add', { id: 1 })).data,
      long: async () =>
        (await gateway.answer('stock/add', { id: 2n ** 63n - 1n, in: [{ n: -(2n ** 53n) }], small: 7, is: true })).data,
      'start write': async () => (await gateway.start('stock/add', { id: 1 })).id,
      'write anew': async () => await gateway.stock.put({ id: 1 }),
      cancel: async () => (await (await gateway.start('mock-data/posts', { id: 1 })).cancel()) ?? null,
      timeout: async () => await impatient.mockData.posts({ id: 1 }).catch(({ message }: Error) => message),
      'no time': async () => {
        const hasty = new Gateway({ key: 'k', baseUrl, timeoutMs: 0, retriesMax: 0 })
        return await hasty.mockData.posts({ id: 1 }).catch(({ message }: Error) => message)
      },
      once: async () => await gateway.call('mock-data/posts', { id: 1 }, { method: 'POST', once: true }),
    }
    const result = await parts[what]?.().catch((error: { code: string }) => error.code)
    return { result, waits }
  }

  /** The result of a part in each client. All clients get the same replies. */
  async function inEach(what: string, replies: Reply[], baseUrl = url): Promise<Outcome[]> {
    script = [...replies]
    const outcomes = [await inTypescript(what, baseUrl)]
    if (!(await isThere('python3'))) return outcomes
    script = [...replies, ...replies]
    const { stdout } = await run('python3', ['-c', PYTHON, baseUrl, what], { cwd: folder })
    const [result, waits, asyncResult, allWaits] = JSON.parse(stdout)
    return [...outcomes, { result, waits }, { result: asyncResult, waits: allWaits - waits }]
  }

  it('the clients return the ids, the mode and the cache status of an answer, and what is left of the limits, send no empty item of a list, and may wait without a timeout', async () => {
    const headers = {
      'x-request-id': 'req_1',
      'x-call-id': 'call_1',
      'x-gateway-mode': 'test',
      'cache-status': 'agw; hit',
      ratelimit: '"minute";r=9;t=6',
    }
    for (const { result } of await inEach('answer', [{ ...DATA, headers }]))
      assert.deepEqual(result, ['req_1', 'call_1', true, 'agw; hit', '"minute";r=9;t=6'])
    assert.deepEqual([...new Set(requests.map(({ path }) => path))], ['/v1/call/mock-data/posts?id=1'])
  })

  it('the clients send a batch once, again if it was refused, and never again if it may have been made', async () => {
    const refused = { status: 429, body: { code: 'RATE_LIMIT_EXCEEDED' }, headers: { 'retry-after': '0' } }
    for (const outcome of await inEach('batch', [refused, { status: 200, body: BATCH }]))
      assert.deepEqual(outcome, { result: 1, waits: 1 })
    assert.deepEqual(JSON.parse(requests[0]?.body ?? ''), {
      calls: [{ api: 'weather', endpoint: '/current', ref: 'a' }],
      take: 'fit',
    })
    for (const outcome of await inEach('batch', ['break'])) assert.deepEqual(outcome, { result: 'NO_ANSWER', waits: 0 })
  })

  it('the clients start a call, ask for its result until it is there, and cancel it; a cancelled task of asyncio closes its connection', async () => {
    const accepted = { status: 202, body: { status: 'pending', id: ID } }
    const pending = { ...accepted, headers: { 'retry-after': '0' } }
    for (const { result } of await inEach('start', [accepted, pending, 'break', DATA]))
      assert.deepEqual(result, { id: 1 })
    const [first, second] = requests
    assert.deepEqual([first?.prefer, second?.path], ['respond-async', `/v1/calls/${ID}`])
    const cancelled = { status: 409, body: failure('CALL_CANCELLED') }
    for (const { result } of await inEach('start', [accepted, cancelled])) assert.equal(result, 'CALL_CANCELLED')
    for (const { result } of await inEach('cancel', [accepted, { status: 204 }])) assert.equal(result, null)
    assert.equal(requests.at(-1)?.method, 'DELETE')
    for (const outcome of await inEach('start', ['break'])) assert.deepEqual(outcome, { result: 'NO_ANSWER', waits: 0 })
  })

  it('the clients send a call that changes something again only if no connection was opened', async () => {
    for (const outcome of await inEach('once', ['break'])) assert.deepEqual(outcome, { result: 'NO_ANSWER', waits: 0 })
    for (const outcome of await inEach('once', [{ status: 502, body: '' }]))
      assert.deepEqual(outcome, { result: 'INVALID_ANSWER', waits: 0 })
    const nobody = createServer().listen(0, '127.0.0.1')
    await once(nobody, 'listening')
    const { port } = nobody.address() as AddressInfo
    await new Promise((done) => nobody.close(done))
    for (const outcome of await inEach('once', [], `http://127.0.0.1:${port}`))
      assert.deepEqual(outcome, { result: 'NO_ANSWER', waits: 1 })
    if (!(await isThere('python3'))) return
    const program = `
import errno, socket
from client import Gateway, GatewayError

def unreachable(*_, **__):
    raise OSError(errno.ENETUNREACH, "Network is unreachable")

socket.create_connection = unreachable
waits = []
try:
    Gateway("k", retries_max=1, on_retry=lambda *given: waits.append(given)).call("mock-data", "posts", {}, method="POST", once=True)
except GatewayError as error:
    print(error.code, len(waits))`
    assert.equal((await run('python3', ['-c', program], { cwd: folder })).stdout, 'NO_ANSWER 1\n')
  })

  it('the clients know which endpoints accept only POST, and which calls they must not repeat', async () => {
    for (const outcome of await inEach('write', ['break'])) assert.deepEqual(outcome, { result: 'NO_ANSWER', waits: 0 })
    const accepted = { status: 202, body: { status: 'pending', id: ID } }
    for (const { result } of await inEach('start write', [accepted])) assert.equal(result, ID)
    for (const outcome of await inEach('write anew', ['break', DATA]))
      assert.deepEqual(outcome, { result: { id: 1 }, waits: 1 })
    const sent = requests.map(({ method, path, body }) => `${method} ${path} ${body.replace(' ', '')}`)
    const [add, put] = ['add', 'put'].map((name) => `POST /v1/call/stock/${name} {"id":1}`)
    assert.deepEqual([...new Set(sent)], [add, put])
  })

  it('the clients send a long whole number of a body as text, because the gateway refuses the number', async () => {
    await inEach('long', [DATA])
    const text = { id: '9223372036854775807', in: [{ n: '-9007199254740992' }], small: 7, is: true }
    for (const { body } of requests) assert.deepEqual(JSON.parse(body), text)
  })

  it('the clients wait for an answer no longer than their timeout, and say why there is none', async () => {
    for (const silence of ['hang', 'drip'] as const) {
      for (const { result } of await inEach('timeout', [silence]))
        assert.match(
          String(result),
          /^NO_ANSWER: No answer arrived: timed out[\w ]*\. Check base_?url and the network\.$/i,
        )
    }
    for (const { result } of await inEach('no time', ['hang']))
      assert.match(String(result), /^NO_ANSWER: No answer arrived: timed out/i)
    for (const { result } of await inEach('timeout', [], 'http://127.0.0.1:2'))
      assert.match(String(result), /^NO_ANSWER: No answer arrived: [^<]*(refused|ECONNREFUSED)[^>]*\. Check base/)
  })

  it('the clients have the names that snippets show for each API and endpoint', () => {
    const typescript = typescriptClient(apis, GATEWAY)
    const python = pythonClient(apis, GATEWAY)
    for (const { slug, endpoints } of apis) {
      for (const { path, example } of endpoints) {
        const codes = snippets({ baseUrl: '', slug, path: `/${path}`, parameters: example })
        const [, api, method] = /gateway\.(\w+)\.(\w+)\(/.exec(codes['TypeScript client'] ?? '') ?? []
        assert.match(typescript, new RegExp(`readonly ${api} = {\n(?: {4}.*\n)*? {4}${method}: `), `${slug}/${path}`)
        const [, member, name, given = ''] =
          /gateway\.(\w+)\.(\w+)\((.*)\)\)$/m.exec(codes['Python client'] ?? '') ?? []
        assert.match(python, new RegExp(`self\\.${member} = `))
        const [, taken = ''] = new RegExp(`def ${name}\\((.*)\\) -> `).exec(python) ?? []
        for (const [, parameter] of given.matchAll(/(?:^|, )(\w+)=/g))
          assert.match(python, new RegExp(`\\b${parameter}: `))
        assert.ok(taken.startsWith('self'))
      }
    }
  })

  it('an API whose name is a method of the clients does not replace the method', () => {
    const [api] = apis
    const own = ['batch', 'call', 'close'].map((slug) => ({ ...(api as ClientApi), slug }))
    const typescript = typescriptClient(own, GATEWAY)
    for (const member of ['batchApi', 'callApi', 'closeApi'])
      assert.match(typescript, new RegExp(`readonly ${member} = `))
    for (const member of ['batch_', 'call_', 'close_'])
      assert.match(pythonClient(own, GATEWAY), new RegExp(`self\\.${member} = `))
  })

  it('an API or an endpoint whose name the client in Python uses itself replaces nothing', async (context) => {
    if (!(await isThere('python3'))) return context.skip('there is no python3 here')
    const [api] = apis
    const own = ['transport', 'request', 'calls', 'async-transport', 'connection', 'mock-data'].map((slug) => ({
      ...(api as ClientApi),
      slug,
      endpoints: (api as ClientApi).endpoints
        .slice(0, 1)
        .map((endpoint) => ({ ...endpoint, typeName: pascal([slug]) })),
    }))
    await writeFile(join(folder, 'own_client.py'), pythonClient(own, GATEWAY))
    const program = `
import sys
from own_client import Gateway
print(Gateway("k", base_url=sys.argv[1]).call("mock-data", "posts"))`
    const { stdout } = await run('python3', ['-c', program, url], { cwd: folder })
    assert.equal(stdout, "{'id': 1}\n")
  })

  it('the client for asyncio makes calls in a process that was forked after its first call', async (context) => {
    if (!(await isThere('python3'))) return context.skip('there is no python3 here')
    const program = `
import asyncio, os, signal, sys
from client import AsyncGateway
gateway = AsyncGateway("k", base_url=sys.argv[1])
asyncio.run(gateway.call("mock-data", "posts"))
child = os.fork()
if child == 0:
    # A call that waits for ever would keep the process.
    signal.alarm(20)
    print(asyncio.run(gateway.call("mock-data", "posts")), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(asyncio.run(gateway.call("mock-data", "posts")))`
    const { stdout } = await run('python3', ['-c', program, url], { cwd: folder })
    assert.equal(stdout, "{'id': 1}\n{'id': 1}\n")
  })

  it('a header of the caller is sent once, however it is written', async () => {
    const { Gateway } = await import(pathToFileURL(join(folder, 'client.ts')).href)
    const sent: Headers[] = []
    const answering = async (_url: string, { headers }: RequestInit): Promise<Response> => {
      sent.push(new Headers(headers))
      return Response.json(DATA.body)
    }
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json', 'X-API-KEY': 'another' }
    await new Gateway({ key: 'k', baseUrl: url, fetch: answering }).call(
      'mock-data/posts',
      {},
      { method: 'POST', headers },
    )
    const [request] = sent
    const names = ['content-type', 'accept', 'x-api-key']
    assert.deepEqual(
      names.map((name) => request?.get(name)),
      ['application/json', 'application/json', 'k'],
    )
  })

  it('the package for npm is built by the compiler without a complaint, is imported by its name, and cannot be published by mistake', async () => {
    const place = join(folder, 'node_modules', 'agent-api-gateway-client')
    await writeAll(place, npmPackage(typescriptClient(apis, GATEWAY), { ...GATEWAY, version: '0.3.0' }))
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', place])
    await writeFile(
      join(folder, 'use.mjs'),
      `import { Gateway } from 'agent-api-gateway-client'
       console.log(JSON.stringify(await new Gateway({ key: 'k', baseUrl: '${url}' }).mockData.posts({ id: 1 })))`,
    )
    const { stdout } = await run(process.execPath, ['use.mjs'], { cwd: folder })
    assert.equal(stdout, '{"id":1}\n')
    const about = JSON.parse(npmPackage('', { ...GATEWAY, version: '1.2.3' })['package.json'] ?? '')
    assert.deepEqual([about.private, about.license, about.version], [true, 'UNLICENSED', '1.2.3'])
  })

  it('the package for PyPI is imported by its name, passes mypy --strict, and PyPI would refuse it', async (t) => {
    const place = join(folder, 'pypi')
    const written = pypiPackage(pythonClient(apis, GATEWAY), { ...GATEWAY, version: '0.3.0' })
    assert.match(written['pyproject.toml'] ?? '', /"Private :: Do Not Upload"/)
    await writeAll(place, written)
    if (!(await isThere('python3'))) return t.skip('there is no python3 here')
    const program = `from agent_api_gateway import Gateway; print(Gateway("k", "${url}").mock_data.posts(id=1))`
    const { stdout } = await run('python3', ['-c', program], {
      env: { ...process.env, PYTHONPATH: join(place, 'src') },
    })
    assert.equal(stdout, "{'id': 1}\n")
    if (!(await isThere('mypy'))) return t.skip('there is no mypy here: its types were not checked')
    const checked = ['--strict', '--python-version', '3.10', '--cache-dir', join(folder, 'mypy'), join(place, 'src')]
    await run('mypy', checked).catch(({ stdout: complaints }) => assert.fail(complaints))
  })
})

/** An API with a call that must not be repeated, and a call that may be repeated. */
function stock({ endpoints: [endpoint], ...api }: ClientApi): ClientApi {
  assert.ok(endpoint)
  const write = (path: string) => ({ ...endpoint, path, typeName: pascal(['stock', path]), method: 'POST' as const })
  return {
    ...api,
    slug: 'stock',
    endpoints: [
      { ...write('add'), mustNotRepeat: true },
      { ...write('put'), mustNotRepeat: false },
    ],
  }
}

async function writeAll(place: string, files: PackageFiles): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(place, path)), { recursive: true })
    await writeFile(join(place, path), content)
  }
}
