import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { withMcpClient } from '../support/mcp-client.ts'
import { document } from '../support/own-document.ts'
import { type Shop, startShop } from '../support/shop.ts'
import { UNLIMITED } from '../support/stage.ts'

describe('a folder of documents that changes while processes run', () => {
  let folder: string
  let shop: Shop
  let gateway: Gateway
  let account: Account
  let operator: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'own-changes-'))
    shop = await startShop()
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 2,
      workers: 2,
      environment: { UPSTREAMS_DIR: folder, BUILTIN_UPSTREAMS: 'currency', PLAN_LIMITS: UNLIMITED },
    })
    operator = await gateway.startConsole()
    account = await signUp(gateway)
  })
  after(async () => {
    await gateway.stop()
    await shop.close()
    await rm(folder, { recursive: true })
  })

  const write = (
    name: string,
    {
      path = '/things',
      rates = [] as object[],
      ...root
    }: Record<string, unknown> & { path?: string; rates?: object[] } = {},
  ) =>
    writeFile(
      join(folder, name),
      JSON.stringify(
        document({
          path,
          root: { 'x-gateway': { caps: { concurrency: 2, rates }, baseUrl: `${shop.url}/depot` }, ...root },
        }),
      ),
    )
  const call = (api: string, url = gateway.url) =>
    send(gateway, `/v1/call/${api}/list-things`, { url, key: account.live })
  const names = async (url = gateway.url): Promise<string[]> => {
    const { body } = await send(gateway, '/v1/catalog', { url })
    return body.data.map(({ api_name: name }: { api_name: string }) => name)
  }
  const paths = async () => Object(await (await fetch(`${gateway.url}/openapi.json`)).json()).paths
  const onAllNodes = (isSo: (url: string) => Promise<boolean>) =>
    until(async () => (await Promise.all(gateway.urls.map(isSo))).every(Boolean))
  const documents = async (): Promise<string | undefined> => {
    const { body } = await operate('/overview')
    return body.problems.find(({ label }: { label: string }) => label === 'Documents')?.text
  }
  const operate = (path: string, body?: object) =>
    send(gateway, `/v1/operator${path}`, {
      url: operator,
      token: gateway.environment.OPERATOR_TOKEN ?? assert.fail(),
      ...(body === undefined ? {} : { method: 'PATCH', body }),
    })

  it('a document that is added is served without a restart, and its first call on each node is answered', async () => {
    assert.equal((await call('first')).body.error.code, 'API_NOT_FOUND')
    await write('first.json')
    await Promise.all(
      gateway.urls.map(async (url) => {
        await until(async () => (await names(url)).includes('first'))
        const { status, text } = await call('first', url)
        assert.equal(status, 200, text)
      }),
    )
    assert.ok((await paths())['/v1/call/first/list-things'])
    const tools = await withMcpClient(
      `${gateway.url}/mcp/first`,
      { 'x-api-key': account.live },
      {},
      async ({ client }) => (await client.listTools()).tools,
    )
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['first_list_things'],
    )
  })

  it('no call fails while its document changes', async () => {
    let isChanged = false
    const caller = async (url: string): Promise<number> => {
      let calls = 0
      for (let isLast = false; !isLast; calls += 1) {
        isLast = isChanged
        const { status, text } = await call('first', url)
        assert.equal(status, 200, text)
      }
      return calls
    }
    const callers = gateway.urls.flatMap((url) => [caller(url), caller(url)])
    await write('first.json', { path: '/others' })
    await onAllNodes(async (url) => {
      await call('first', url)
      return shop.requests.at(-1)?.url === '/depot/others'
    })
    await until(async () => {
      await Promise.all(gateway.urls.map((url) => call('first', url)))
      return shop.requests.slice(-gateway.urls.length).every(({ url }) => url === '/depot/others')
    })
    isChanged = true
    for (const calls of await Promise.all(callers)) assert.ok(calls > 0)
  })

  it('with an error in one document nothing changes, and operators read the error until it is corrected', async () => {
    await write('second.json')
    await writeFile(join(folder, 'first.json'), '{ "openapi": "3.1.0" }')
    await until(async () => /refused: first\.json/.test((await documents()) ?? ''))
    assert.deepEqual(await names(), ['currency', 'first'])
    assert.equal((await call('first')).status, 200)
    await write('first.json', { path: '/others' })
    await onAllNodes(async (url) => (await names(url)).includes('second'))
    await until(async () => (await documents()) === undefined)
    assert.equal((await call('second')).status, 200)
  })

  it('the settings that an operator made for an API apply to its changed document too, together with the new caps', async () => {
    const limits = async () => (await send(gateway, '/v1/catalog/second')).body.limits
    assert.equal((await operate('/upstreams/second', { tierRequired: 'pro' })).status, 200)
    await until(async () => (await call('second')).status === 402)
    await write('second.json', { rates: [{ max: 3, seconds: 60 }] })
    await until(async () => (await limits()).rates[0]?.max === 3)
    assert.equal((await call('second')).status, 402)
    assert.equal((await operate('/upstreams/second', { tierRequired: 'developer' })).status, 200)
    await until(async () => (await call('second')).status !== 402)
  })

  it('a call that waits while its API leaves is answered as it was accepted; then the API is gone', async () => {
    await write('second.json', { rates: [{ max: 1, seconds: 2 }] })
    await until(async () => (await send(gateway, '/v1/catalog/second')).body.limits.rates[0]?.max === 1)
    const calls = [1, 2, 3].map(() => call('second'))
    await until(async () => {
      const { body } = await operate('/overview')
      const row = body.upstreams.find(({ slug }: { slug: string }) => slug === 'second')
      return row.queue.waiting + row.queue.active > 0
    })
    await rm(join(folder, 'second.json'))
    await onAllNodes(async (url) => !(await names(url)).includes('second'))
    for (const { status, text } of await Promise.all(calls)) assert.equal(status, 200, text)
    const { status, body } = await call('second')
    assert.deepEqual([status, body.error.code], [404, 'API_NOT_FOUND'])
    assert.equal((await send(gateway, '/v1/catalog/second')).status, 404)
    assert.equal((await paths())['/v1/call/second/list-things'], undefined)
  })
})
