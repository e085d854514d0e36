import assert from 'node:assert/strict'
import { ServerResponse } from 'node:http'
import { after, before, describe, it, mock } from 'node:test'
import { isCallRoute } from '../../src/http/error-answer.ts'
import { listRoutes, type RegisteredRoute } from '../../src/http/method-not-allowed.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

/** What a request may build for itself alone for each unit that it takes of its address, bytes. */
const BUILT_BYTES_MAX = 16 * 1024

/** Values that lead to the largest answer of a route. */
const VALUES: Record<string, string> = { ':slug': 'weather', ':slug.md': 'weather.md', ':name': 'quickstart' }

/** Answers that callers' words choose, besides the plain answer of the same route. */
const CHOSEN = [
  ['/', '/?q=weather'],
  ['/', '/?health=Healthy'],
  ['/v1/catalog', '/v1/catalog?q=a'],
  ['/docs', '/docs/guides/nothing-like-this'],
] as const

describe('what a request without an account costs', () => {
  let gateway: Gateway
  let routes: RegisteredRoute[]

  before(async () => {
    gateway = await startGateway({
      isLocal: true,
      workers: 0,
      environment: { SECURITY_CONTACT: 'mailto:a@example.com' },
    })
    routes = listRoutes(gateway.apps.get(gateway.url) ?? assert.fail()).filter(
      ({ method, url, options }) => method === 'GET' && options.config?.guard === undefined && !isCallRoute(url),
    )
  })
  after(() => gateway.stop())

  /** What the node gave to Node for the body of an answer: the object itself, not a copy. */
  async function payloadOf(path: string): Promise<unknown> {
    const ends = mock.method(ServerResponse.prototype, 'end')
    try {
      await (
        await fetch(gateway.url + path, {
          headers: { accept: 'text/html', 'accept-encoding': 'identity' },
          redirect: 'manual',
        })
      ).arrayBuffer()
      return ends.mock.calls[0]?.arguments[0]
    } finally {
      ends.mock.restore()
    }
  }

  it('what a request without an account costs is little for each unit, or all readers share the same bytes', async () => {
    const plain = routes.map((route): [RegisteredRoute, string] => [route, addressOf(route)])
    const chosen = CHOSEN.map(([url, path]): [RegisteredRoute, string] => [
      routes.find((route) => route.url === url) ?? assert.fail(url),
      path,
    ])
    assert.ok(plain.length > 30)
    const wrong: string[] = []
    for (const [{ options }, path] of [...plain, ...chosen]) {
      const [first, second] = [await payloadOf(path), await payloadOf(path)]
      const units = options.config?.anonymousUnits ?? 1
      const isShared = first === second && Buffer.isBuffer(first)
      const bytes = Buffer.isBuffer(second) || typeof second === 'string' ? Buffer.byteLength(second) : 0
      if (!isShared && bytes > units * BUILT_BYTES_MAX) wrong.push(`${path} builds ${bytes} bytes for ${units} units`)
    }
    assert.deepEqual(wrong, [])
  })
})

function addressOf({ url }: RegisteredRoute): string {
  return url
    .split('/')
    .map((part) => VALUES[part] ?? (part.startsWith(':') ? 'x' : part === '*' ? 'portal/assets/app.js' : part))
    .join('/')
}
