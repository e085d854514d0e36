import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { type ClientApi, clientApis } from '../../src/clients/client-api.ts'
import { pythonClient } from '../../src/clients/python-client.ts'
import { typescriptClient } from '../../src/clients/typescript-client.ts'

const run = promisify(execFile)

const GATEWAY = { baseUrl: 'http://gateway.test', callTimeoutMs: 30_000 }

/** One answer that the server is to give. */
interface Scripted {
  status: number
  code?: string
  retryAfter?: number
  location?: string
  /** Sent as it is. */
  body?: string
}

const PYTHON = `
import json, sys
from client import Gateway, GatewayError

try:
    print(json.dumps(Gateway("k", base_url=sys.argv[1], retry_wait_max=5).mock_data.posts(id=1)))
except GatewayError as error:
    print(json.dumps([error.code, error.retry_after]))
`

describe('the clients in one file', () => {
  let server: Server
  let url: string
  let folder: string
  let script: Scripted[]
  let arrivals: { at: number; path: string; authorization: string | undefined }[]
  let apis: ClientApi[]

  before(async () => {
    server = createServer((request, response) => {
      arrivals.push({
        at: performance.now(),
        path: request.url ?? '',
        authorization: request.headers['x-api-key'] as string | undefined,
      })
      const { status, code, retryAfter, location, body: given } = script.shift() ?? { status: 200 }
      const failure = { code, message: 'It failed.', hint: 'Wait.', docs: '' }
      const body = status === 200 ? { status: 'success', data: { id: 1 } } : { status: 'error', error: failure }
      response.writeHead(status, {
        ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
        ...(location === undefined ? {} : { location }),
      })
      response.end(given ?? JSON.stringify(body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    folder = await mkdtemp(join(tmpdir(), 'agw-clients-'))
    apis = clientApis(await loadCatalog(new Map()))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'client.ts'), typescriptClient(apis, 'http://gateway.test'))
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

  const hasPython = () => run('python3', ['--version']).catch(() => undefined)

  /** A call of each client: its data, or code and Retry-After of its failure. */
  const clients = {
    TypeScript: async (baseUrl = url): Promise<unknown> => {
      const { Gateway, GatewayError } = await import(pathToFileURL(join(folder, 'client.ts')).href)
      const gateway = new Gateway({ key: 'k', baseUrl, retryWaitMsMax: 5_000 })
      return await gateway.mockData.posts({ id: 1 }).catch((error: { code: string; retryAfter?: number }) => {
        assert.ok(error instanceof GatewayError)
        return [error.code, error.retryAfter ?? null]
      })
    },
    Python: async (baseUrl = url): Promise<unknown> =>
      JSON.parse((await run('python3', ['-c', PYTHON, baseUrl], { cwd: folder })).stdout),
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
      assert.deepEqual([first?.path, first?.authorization], ['/v1/call/mock-data/posts?id=1', 'k'])
    })

    it(`the clients in one file in ${name} throws what no retry can mend, and what must wait too long, at once`, async (context) => {
      if (await skipWithoutPython(context)) return
      script = [{ status: 404, code: 'UPSTREAM_NOT_FOUND' }]
      assert.deepEqual(await call(), ['UPSTREAM_NOT_FOUND', null])
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
  }

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
    assert.match(await readFile(join(folder, 'client.ts'), 'utf8'), /\| 'INVALID_ANSWER'\n/)
  })

  it('the client in one file for Python waits longer than a call of this gateway may take', () => {
    assert.match(pythonClient(apis, { ...GATEWAY, callTimeoutMs: 60_000 }), /^ {8}timeout: float = 70\.0,$/m)
    assert.match(pythonClient(apis, GATEWAY), /^ {8}timeout: float = 40\.0,$/m)
  })

  it('the clients in one file know every endpoint of the catalog', async () => {
    const source = typescriptClient(apis, 'http://gateway.test')
    const python = pythonClient(apis, GATEWAY)
    for (const { slug, endpoints } of apis) {
      for (const { path } of endpoints) {
        assert.ok(source.includes(`this.call("${slug}/${path}",`), slug + path)
        assert.ok(python.includes(`self._transport.call("${slug}", "${path}",`), slug + path)
      }
    }
  })
})
