import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { type Account, send, signUp, sql } from '../support/client.ts'
import { type Gateway, reachableAddress, startGateway, until } from '../support/gateway.ts'
import { withMcpClient } from '../support/mcp-client.ts'
import { authorizeUrl, codeChallenge, codeVerifier, registerApp, signIn } from '../support/oauth-client.ts'
import { signUpIn, visitPortal } from '../support/portal.ts'
import { LAST_SHELF, OWN_FOLDER, SHOP_KEY, type Shop, startShop } from '../support/shop.ts'

const ITEMS = [{ sku: 'tea-1', count: 2 }]

describe('an own API', () => {
  let shop: Shop
  let gateway: Gateway
  let account: Account
  let writer: string
  let reader: string
  let browser: Browser | undefined

  before(async () => {
    shop = await startShop()
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        ...(await reachableAddress()),
        UPSTREAMS_DIR: OWN_FOLDER,
        BUILTIN_UPSTREAMS: 'weather,currency',
        UPSTREAM_ORDERS_URL: shop.url,
        UPSTREAM_ORDERS_KEY: SHOP_KEY,
        UPSTREAM_DEPOT_URL: `${shop.url}/depot`,
        UPSTREAM_DEPOT_KEY: 'token-of-the-operator',
        PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":100}}',
      },
    })
    account = await signUp(gateway)
    const { token } = account
    writer = (await send(gateway, '/v1/keys', { token, body: { mayWrite: true } })).body.key
    reader = (await send(gateway, '/v1/keys', { token, body: {} })).body.key
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
    await shop.close()
  })

  const call = (path: string, body?: object, key = writer) =>
    send(gateway, `/v1/call/orders/${path}`, { key, ...(body === undefined ? {} : { body }) })

  it('an own API is in the catalog beside the built-in APIs that the operator chose', async () => {
    const { body } = await send(gateway, '/v1/catalog')
    assert.deepEqual(
      body.data.map(({ api_name: name }: { api_name: string }) => name),
      ['currency', 'weather', 'depot', 'orders'],
    )
    // If there are hundreds of APIs, the list has hundreds of kilobytes. It travels compressed, and
    // once.
    const listed = await fetch(`${gateway.url}/v1/catalog`, { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(listed.headers.get('content-encoding'), 'gzip')
    assert.match(listed.headers.get('vary') ?? '', /x-api-key.*accept-encoding/)
    const headers = { 'accept-encoding': 'gzip', 'if-none-match': listed.headers.get('etag') ?? '' }
    assert.ok([200, 304].includes((await fetch(`${gateway.url}/v1/catalog`, { headers })).status))
    const { body: found } = await send(gateway, '/v1/catalog?q=shop%20orders')
    assert.equal(found.data[0].api_name, 'orders')
    const { body: detail } = await send(gateway, '/v1/catalog/orders')
    assert.deepEqual(
      detail.limits.rates.map(({ max, seconds }: { max: number; seconds: number }) => [max, seconds]),
      [[5, 1]],
    )
    const create = detail.endpoints.find(({ path }: { path: string }) => path === '/create-order')
    assert.deepEqual([create.method, create.effect], ['POST', 'once'])
  })

  it('a call goes out with the operator’s key and the parameters as the document says', async () => {
    const { status, body } = await call('list-orders?page=2&per_page=5&state=open&state=paid', undefined, reader)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.data.page, body.data.nextPage], [2, 3])
    const seen = shop.requests.at(-1)
    assert.equal(seen?.url, '/orders?page=2&per_page=5&state=open&state=paid')
    assert.equal(seen?.headers['x-shop-key'], SHOP_KEY)
    const { body: one } = await call('get-order?id=ord_1001', undefined, reader)
    assert.equal(one.data.customer, 'Ada')
  })

  it('a documented error reaches the caller with the text of the source, and does not change the health of the API', async () => {
    const missing = await call('get-order?id=ord_9', undefined, reader)
    assert.equal(missing.status, 404)
    assert.equal(missing.body.error.code, 'UPSTREAM_NOT_FOUND')
    assert.equal(missing.body.error.message, 'There is no order ord_9.')
    const refused = await call('create-order', { body: { customer: 'Nobody', items: ITEMS } })
    assert.equal(refused.status, 400)
    assert.equal(refused.body.error.code, 'UPSTREAM_REJECTED')
    assert.equal(refused.body.error.message, 'Nobody has no account in this shop.')
    assert.equal((await send(gateway, '/v1/catalog/orders')).body.health.status, 'Healthy')
  })

  it('a path parameter is one segment, whatever it holds', async () => {
    for (const id of ['..', '.', '']) {
      const { status, body } = await call(`get-order?id=${encodeURIComponent(id)}`)
      assert.deepEqual([status, body.error.code], [400, 'INVALID_PARAMETER'], id)
    }
    await call(`get-order?id=${encodeURIComponent('a/../b?c#d')}`)
    assert.equal(shop.requests.at(-1)?.url, '/orders/a%2F..%2Fb%3Fc%23d')
  })

  it('a POST that creates takes its body as one parameter, and is a POST at the source', async () => {
    const { status, body } = await call('create-order', { body: { customer: 'Grace', items: ITEMS } })
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.data.customer, 'Grace')
    const seen = shop.requests.at(-1)
    assert.deepEqual([seen?.method, seen?.url, seen?.headers['content-type']], ['POST', '/orders', 'application/json'])
    assert.deepEqual(JSON.parse(seen?.body ?? ''), { customer: 'Grace', items: ITEMS })
  })

  it('a body that does not fit its schema is refused before anything is sent', async () => {
    const before = shop.requests.length
    const cases: [object, RegExp][] = [
      [{}, /body is invalid: it is required/],
      [{ body: { customer: 'Ada' } }, /items/],
      [{ body: { customer: 'Ada', items: [{ sku: 'x', count: 0 }] } }, /\/items\/0\/count/],
      [{ body: 'text' }, /must be/],
      [{ voucher: 'V1', customer: 'Ada' }, /Parameter customer is .*put it into body/],
      [{ body: { customer: 'Ada', items: ITEMS }, extra: 1 }, /only declared parameters/],
      [{ body: { customer: 'x'.repeat(20_000), items: ITEMS } }, /bytes/],
      [{ body: { customer: writer, items: ITEMS } }, /key of this service/],
    ]
    for (const [body, words] of cases) {
      const answer = await call('create-order', body)
      assert.equal(answer.status, 400, JSON.stringify(answer.body))
      assert.match(answer.body.error.message, words)
    }
    assert.equal(shop.requests.length, before)
  })

  it('only POST calls an endpoint that changes something, and only a key that may write', async () => {
    const byGet = await fetch(`${gateway.url}/v1/call/orders/create-order`, { headers: { 'x-api-key': writer } })
    assert.equal(byGet.status, 405)
    assert.equal(byGet.headers.get('allow'), 'POST')
    const order = { body: { customer: 'Eve', items: ITEMS } }
    const refused = await call('create-order', order, reader)
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'KEY_API_FORBIDDEN'])
    const bySession = await send(gateway, '/v1/call/orders/create-order', { token: account.token, body: order })
    assert.equal(bySession.status, 200)
    assert.equal(shop.createdBy('Eve'), 1)
    const batch = { calls: [{ api: 'orders', endpoint: '/create-order', parameters: order }] }
    const inBatch = await send(gateway, '/v1/batch', {
      key: reader,
      body: batch,
      headers: { accept: 'application/json' },
    })
    assert.equal(inBatch.body.results[0].error.code, 'KEY_API_FORBIDDEN')
    assert.equal(shop.createdBy('Eve'), 1)
  })

  it('two equal writes in a batch are both sent, and a 204 of the source is a success', async () => {
    const order = { body: { customer: 'Twin', items: ITEMS } }
    const calls = [1, 2].map(() => ({ api: 'orders', endpoint: '/create-order', parameters: order }))
    const { body } = await send(gateway, '/v1/batch', {
      key: writer,
      body: { calls },
      headers: { accept: 'application/json' },
    })
    assert.deepEqual([body.ok, body.deduplicated], [2, 0])
    assert.equal(shop.createdBy('Twin'), 2)
    const created = await call('create-order', { body: { customer: 'Gone', items: ITEMS } })
    const cancelled = await call('cancel-order', { id: created.body.data.id })
    assert.deepEqual([cancelled.status, cancelled.body.data], [200, {}])
    assert.equal(shop.requests.at(-1)?.method, 'DELETE')
  })

  it('the cap of an own API holds at the source: never more than 5 requests in a second, writes included', async () => {
    const from = shop.requests.length
    const calls = Array.from({ length: 16 }, (_, index) =>
      index % 2 === 0
        ? call(`list-orders?page=${index + 1}`)
        : call('create-order', { body: { customer: 'Cap', items: ITEMS } }),
    )
    assert.deepEqual(new Set((await Promise.all(calls)).map(({ status }) => status)), new Set([200]))
    const times = shop.requests.slice(from).map(({ at }) => at)
    for (const [index, at] of times.entries()) {
      assert.ok(times.slice(index).filter((other) => other - at < 1_000).length <= 5, `${times}`)
    }
    assert.equal(shop.createdBy('Cap'), 8)
  })

  it('a write whose answer is a failure or is lost is OUTCOME_UNKNOWN after one request, and a read is tried again', async () => {
    for (const mode of ['fails', 'cuts'] as const) {
      shop.mode = mode
      const customer = `Unknown ${mode}`
      const { status, body } = await call('create-order', { body: { customer, items: ITEMS } })
      assert.deepEqual([status, body.error.code], [502, 'OUTCOME_UNKNOWN'], mode)
      assert.equal(shop.createdBy(customer), 1)
    }
    shop.mode = 'serves'
  })

  it('a test key is answered from the document’s examples, or by values made from its schemas, and each answer says which', async () => {
    const before = shop.requests.length
    const { token } = account
    const key = (await send(gateway, '/v1/keys', { token, body: { environment: 'test', mayWrite: true } })).body.key
    const listed = await call('list-orders', undefined, key)
    assert.equal(listed.body.data.orders[0].id, 'ord_1001')
    const created = await call('create-order', { body: { customer: 'Ada', items: ITEMS } }, key)
    assert.equal(created.body.data.id, 'ord_1002')
    const made = await call('get-order?id=ord_7', undefined, key)
    assert.equal(typeof made.body.data.customer, 'string')
    assert.deepEqual(
      [listed, created, made].map(({ headers }) => [headers.get('x-gateway-mode'), headers.get('x-gateway-example')]),
      ['document', 'document', 'made'].map((example) => ['test', example]),
    )
    assert.equal(made.headers.get('x-gateway-recorded-for'), null)
    const raw = { key, body: { id: 'ord_7' }, headers: { 'x-gateway-response': 'raw' } }
    assert.equal((await send(gateway, '/v1/call/orders/cancel-order', raw)).text, 'null')
    const headers = { accept: 'application/json' }
    const calls = [{ api: 'orders', endpoint: '/get-order', parameters: { id: 'ord_7' } }]
    const { body: batch } = await send(gateway, '/v1/batch', { key, body: { calls }, headers })
    assert.equal(batch.results[0].example, 'made')
    await withMcpClient(`${gateway.url}/mcp`, { 'x-api-key': key }, {}, async ({ client }) => {
      const notes = await Promise.all(
        ['/list-orders', '/get-order'].map(async (endpoint) => {
          const parameters = endpoint === '/get-order' ? { id: 'ord_7' } : {}
          const result = await client.callTool({ name: 'call_api', arguments: { api: 'orders', endpoint, parameters } })
          return Object(result.structuredContent).note
        }),
      )
      assert.match(notes[0], /^Example from the API's document/)
      assert.match(notes[1], /^Made from the schema/)
    })
    assert.equal(shop.requests.length, before)
  })

  it('the page of an own API has a form that sends a body, and the Markdown page has the same call', async () => {
    const page = await (await fetch(`${gateway.url}/apis/orders`)).text()
    assert.match(page, /<span class="verb">POST<\/span> <code>\/v1\/call\/orders\/create-order<\/code>/)
    assert.match(page, /<textarea id="e\d-body" name="body"/)
    const markdown = await (await fetch(`${gateway.url}/docs/apis/orders.md`)).text()
    assert.match(markdown, /## POST \/v1\/call\/orders\/create-order/)
    assert.match(markdown, /-d '\{"body":\{"customer":"Ada"/)
  })

  it('the document of the gateway describes its calls', async () => {
    const body = Object(await (await fetch(`${gateway.url}/openapi.json`)).json())
    const create = body.paths['/v1/call/orders/create-order']
    assert.deepEqual(Object.keys(create), ['post'])
    assert.deepEqual(create.post.requestBody.content['application/json'].schema.required, ['body'])
    assert.ok(body.paths['/v1/call/orders/list-orders'].get)
  })

  it('models get typed tools with the hints of their operation, and change_api only if they may change something', async () => {
    const headers = { 'x-api-key': writer }
    await withMcpClient(`${gateway.url}/mcp/orders`, headers, {}, async ({ client }) => {
      const { tools } = await client.listTools()
      const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]))
      assert.equal(hints.orders_list_orders?.readOnlyHint, true)
      assert.deepEqual(
        [hints.orders_create_order?.readOnlyHint, hints.orders_create_order?.destructiveHint],
        [false, false],
      )
      assert.equal(hints.orders_cancel_order?.destructiveHint, true)
      const result = await client.callTool({
        name: 'orders_create_order',
        arguments: { body: { customer: 'Model', items: ITEMS } },
      })
      // The data has a member note, as results of test calls do, so the data has a member of its
      // own in the result.
      assert.equal(Object(result.structuredContent).data?.customer, 'Model', JSON.stringify(result))
    })
    await withMcpClient(`${gateway.url}/mcp`, headers, {}, async ({ client }) => {
      assert.ok((await client.listTools()).tools.some(({ name }) => name === 'change_api'))
      const order = {
        api: 'orders',
        endpoint: '/create-order',
        parameters: { body: { customer: 'Agent', items: ITEMS } },
      }
      const refused = await client.callTool({ name: 'call_api', arguments: order })
      assert.equal(refused.isError, true)
      assert.match(JSON.stringify(refused.content), /change_api/)
      const changed = await client.callTool({ name: 'change_api', arguments: order })
      assert.equal(Object(changed.structuredContent).data?.customer, 'Agent', JSON.stringify(changed))
    })
    await withMcpClient(`${gateway.url}/mcp`, { 'x-api-key': reader }, {}, async ({ client }) => {
      assert.ok(!(await client.listTools()).tools.some(({ name }) => name === 'change_api'))
      for (const category of ['Store Room', ' store room ']) {
        const found = await client.callTool({ name: 'search_apis', arguments: { category } })
        const { apis, total } = Object(found.structuredContent)
        assert.deepEqual([total, apis[0]?.api], [1, 'depot'], category)
      }
    })
    assert.equal(shop.createdBy('Model') + shop.createdBy('Agent'), 2)
  })

  it('an application may change data only after its user has allowed it, and no more after the user has withdrawn it', async () => {
    const app = await registerApp(gateway.url)
    const { tokens } = await signIn(gateway.url, account.token, { app })
    const { access_token: access } = await tokens()
    const customer = 'By an application'
    const order = { api: 'orders', endpoint: '/create-order', parameters: { body: { customer, items: ITEMS } } }
    const seen: [boolean, string][] = []
    for (const mayWrite of [undefined, true, false]) {
      const [{ id }] = (await send(gateway, '/v1/connections', { token: account.token })).body.connections
      const change = { method: 'PATCH', token: account.token, body: { mayWrite } }
      if (mayWrite !== undefined) await send(gateway, `/v1/connections/${id}`, change)
      await withMcpClient(`${gateway.url}/mcp`, { authorization: `Bearer ${access}` }, {}, async ({ client }) => {
        const isListed = (await client.listTools()).tools.some(({ name }) => name === 'change_api')
        const { content } = await client.callTool({ name: 'change_api', arguments: order })
        seen.push([isListed, JSON.stringify(content)])
      })
    }
    assert.deepEqual(
      seen.map(([isListed]) => isListed),
      [false, true, false],
    )
    assert.match(String(seen[0]?.[1]), /this application may only read.*Connected apps/)
    assert.match(String(seen[2]?.[1]), /this application may only read/)
    assert.equal(shop.createdBy(customer), 1)
  })

  it('in the portal, people make keys with limits that may change data, and send a body', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      const { email } = await signUpIn(page)
      const keys = async () => {
        const statement = `select apis, per_minute, may_write from api_keys join users on users.id = user_id
          where environment = 'live' and email = $1`
        return await sql(gateway, statement, [email])
      }
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByLabel('Environment').selectOption('live')
      await page.getByText('What it may do').click()
      const tick = page.getByLabel('It may change data at depot, orders')
      await tick.waitFor()
      assert.equal(await tick.isChecked(), false)
      await page.getByLabel('APIs that it may call').fill('weather')
      await tick.waitFor({ state: 'hidden' })
      await page.getByLabel('APIs that it may call').fill('weather, orders')
      await page.getByLabel('It may change data at orders').check()
      await page.getByLabel('Maximum calls a minute').fill('7')
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.getByText('orders, weather; may change data; 7 a minute').waitFor()
      assert.deepEqual(await keys(), [{ apis: ['orders', 'weather'], per_minute: 7, may_write: true }])
      await page.goto('/apis/orders')
      const section = page.getByRole('region', { name: '/create-order' })
      await page.getByLabel('Live data').check()
      await section.locator('textarea').fill('{"customer": "In the portal", "items": [{"sku": "tea-1", "count": 1}]}')
      await section.getByRole('button', { name: 'Send' }).click()
      await section.getByText(/200 in \d/).waitFor()
      assert.equal(shop.createdBy('In the portal'), 1)
      await page.goto('/account/keys')
      await page.getByRole('button', { name: /^Change agw_live/ }).click()
      await page.getByRole('dialog').getByLabel('It may change data at orders').uncheck()
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByText('orders, weather; 7 a minute').waitFor()
      assert.deepEqual(await keys(), [{ apis: ['orders', 'weather'], per_minute: 7, may_write: false }])

      const app = await registerApp(gateway.url, `${gateway.url}/docs`)
      const sign = (resource: string) =>
        authorizeUrl(gateway.url, app, { resource, code_challenge: codeChallenge(codeVerifier()) }).href
      await page.goto(sign(`${gateway.url}/mcp/weather`))
      await page.getByText('and no other').waitFor()
      assert.equal(await page.getByLabel(/change data/).isVisible(), false)
      await page.goto(sign(`${gateway.url}/mcp`))
      await page.getByLabel('It may change data at depot, orders').waitFor()
      await page.getByLabel('Only these').check()
      await page.getByLabel(/change data/).waitFor({ state: 'hidden' })
      await page.getByLabel('Orders').check()
      await page.getByLabel('It may change data at orders').check()
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.waitForURL(/error|code=/)
      await page.goto('/account/connections')
      await page.getByText('orders; may change data').waitFor()
    })
  })

  it('answers are stored as the document says, for all callers or for each, and a page is a parameter', async () => {
    const other = (await send(gateway, '/v1/keys', { token: (await signUp(gateway)).token, body: {} })).body.key
    const read = async (path: string, key: string) => {
      const { status, body } = await send(gateway, `/v1/call/depot/${path}`, { key })
      assert.equal(status, 200, JSON.stringify(body))
      return body.data.request
    }
    const first = await read('list-stock', reader)
    assert.equal(await read('list-stock?page=1', other), first, 'the default page, for another account')
    assert.notEqual(await read('list-stock?page=2', other), first)
    assert.equal(shop.requests.at(-1)?.url, '/depot/stock?page=2')
    assert.equal((await send(gateway, '/v1/call/depot/list-stock?page=10', { key: reader })).status, 400)
    const mine = await read('list-mine', reader)
    assert.notEqual(await read('list-mine', other), mine)
    assert.equal(await read('list-mine', reader), mine)
  })

  it('a request is what the document says, byte for byte, and a number of 64 bits goes out and comes back with all its digits', async () => {
    const query = `ids=a%2Fb&ids=c%2Cd&after=${LAST_SHELF}`
    const { status, text } = await send(gateway, `/v1/call/depot/list-shelves?${query}`, { key: reader })
    assert.equal(status, 200, text)
    assert.equal(text, `{"status":"success","data":{"last":${LAST_SHELF}}}`)
    const sent = shop.requests.find(({ url }) => url.startsWith('/depot/shelves'))
    assert.equal(sent?.url, `/depot/shelves/a%2Fb,c%2Cd?after=${LAST_SHELF}`)
    assert.equal(sent?.headers.accept, 'application/vnd.depot+json, application/json;q=0.9')
    await withMcpClient(`${gateway.url}/mcp/depot`, { 'x-api-key': reader }, {}, async ({ client }) => {
      const given = { ids: ['a'], after: LAST_SHELF, fields: ['last'] }
      const { content } = await client.callTool({ name: 'depot_list_shelves', arguments: given })
      assert.equal(Object(content)[0]?.text, `{"last":${LAST_SHELF}}`)
    })
  })

  it('a caller’s own key goes out in the form of the document, and its answers are kept apart from answers to the operator’s key', async () => {
    const person = await signUp(gateway)
    const token = person.token
    const read = () => send(gateway, '/v1/call/depot/list-stock?page=3', { token })
    // The check of the saved key sends requests of its own beside the calls.
    const authorizations = () =>
      shop.requests.filter(({ url }) => url === '/depot/stock?page=3').map(({ headers }) => headers.authorization)
    await send(gateway, '/v1/call/depot/list-stock?page=3', { key: reader })
    assert.deepEqual(authorizations(), ['Bearer token-of-the-operator'])
    const saved = await send(gateway, '/v1/provider-keys/depot', {
      method: 'PUT',
      token,
      body: { key: 'token-of-mine' },
    })
    assert.equal(saved.status, 200, saved.text)
    assert.equal((await read()).status, 200)
    assert.deepEqual(authorizations(), ['Bearer token-of-the-operator', 'Bearer token-of-mine'])
  })

  it('a write with the id of its call is tried again after a failure, with the same id', async () => {
    shop.failingMoves = 1
    const body = { body: { sku: 'tea-1' } }
    const { status, headers, text } = await send(gateway, '/v1/call/depot/add-move', { key: writer, body })
    assert.equal(status, 200, text)
    const moves = shop.requests.filter(({ url }) => url === '/depot/moves')
    const id = headers.get('x-call-id')
    assert.deepEqual(
      moves.map((request) => [request.headers['idempotency-key'], request.body]),
      [
        [id, '{"sku":"tea-1"}'],
        [id, '{"sku":"tea-1"}'],
      ],
    )
  })

  it('the client for Python reads and writes', async (t: TestContext) => {
    const file = join(gateway.services.folder, 'client.py')
    await writeFile(file, await (await fetch(`${gateway.url}/client.py`)).text())
    const script = [
      'from client import Gateway, GatewayError',
      `gateway = Gateway("${writer}", base_url="${gateway.url}")`,
      'print(gateway.orders.list_orders(state=["open", "paid"])["page"])',
      'print(gateway.orders.create_order(body={"customer": "Monty", "items": [{"sku": "tea-1", "count": 2}]})["customer"])',
    ]
    const ran = await promisify(execFile)('python3', ['-c', script.join('\n')], { cwd: gateway.services.folder }).catch(
      (error) => (error.code === 'ENOENT' ? undefined : Promise.reject(error)),
    )
    if (!ran) return t.skip('there is no Python')
    assert.deepEqual(ran.stdout.trim().split('\n'), ['1', 'Monty'])
    assert.equal(shop.createdBy('Monty'), 1)
  })

  it('the client for TypeScript reads and writes', async () => {
    const file = join(gateway.services.folder, 'client-of-orders.ts')
    const source = await (await fetch(`${gateway.url}/client.ts`)).text()
    await writeFile(file, source)
    const { Gateway: Client } = await import(pathToFileURL(file).href)
    const client = new Client({ key: writer, baseUrl: gateway.url })
    const { orders } = await client.orders.listOrders({ state: ['open'] })
    assert.ok(orders.length > 0)
    const made = await client.orders.createOrder({ body: { customer: 'Typed', items: ITEMS } })
    assert.equal(made.customer, 'Typed')
    shop.mode = 'fails'
    await assert.rejects(client.orders.createOrder({ body: { customer: 'Typed twice', items: ITEMS } }), {
      code: 'OUTCOME_UNKNOWN',
    })
    shop.mode = 'serves'
    assert.equal(shop.createdBy('Typed twice'), 1)
  })
})

describe('processes with different documents', () => {
  let gateway: Gateway
  let account: Account
  let shop: Shop

  before(async () => {
    shop = await startShop()
    gateway = await startGateway({
      workers: 1,
      environment: {
        UPSTREAMS_DIR: OWN_FOLDER,
        BUILTIN_UPSTREAMS: 'none',
        UPSTREAM_ORDERS_URL: shop.url,
        UPSTREAM_ORDERS_KEY: SHOP_KEY,
        CALL_TIMEOUT_MS: '20000',
      },
    })
    account = await signUp(gateway)
  })
  after(async () => {
    await gateway.stop()
    await shop.close()
  })

  const list = () => send(gateway, '/v1/call/orders/list-orders', { token: account.token })

  it('processes with different documents are a problem line that names them, and no worker sends by another document', async () => {
    assert.equal((await list()).status, 200)
    const folder = await mkdtemp(join(gateway.services.folder, 'own-'))
    await cp(OWN_FOLDER, folder, { recursive: true })
    const text = await readFile(join(folder, 'orders.yaml'), 'utf8')
    await writeFile(join(folder, 'orders.yaml'), text.replace('title: Orders', 'title: Orders of tomorrow'))
    gateway.workers[0]?.kill('SIGTERM')
    await gateway.startWorker({ UPSTREAMS_DIR: folder })
    let answer = await list()
    await until(async () => {
      answer = await list()
      return answer.status !== 200
    })
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'API_NOT_ENABLED'], answer.text)
    const console = await gateway.startConsole()
    const headers = { authorization: `Bearer ${gateway.environment.OPERATOR_TOKEN}` }
    let problem: { label: string; text: string } | undefined
    await until(async () => {
      const overview = Object(await (await fetch(`${console}/v1/operator/overview`, { headers })).json())
      problem = overview.problems.find(({ label }: { label: string }) => label === 'Documents')
      return /worker \d+ [0-9a-f]{4}/.test(problem?.text ?? '') && /web \d+ [0-9a-f]{4}/.test(problem?.text ?? '')
    })
    assert.match(problem?.text ?? '', /^orders differs: /)
  })

  it('a call for an API that no worker has loaded is refused at once', async () => {
    for (const worker of gateway.workers) worker.kill('SIGKILL')
    await gateway.startWorker({ UPSTREAMS_DIR: '', BUILTIN_UPSTREAMS: 'weather' })
    let answer = await list()
    await until(async () => {
      answer = await list()
      return answer.body.error?.message === 'No running worker has loaded the API orders.'
    })
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'API_NOT_ENABLED'], answer.text)
    const { now } = (await send(gateway, '/v1/catalog/orders', { token: account.token })).body
    assert.deepEqual([now.waitMs, now.limitedBy], [null, 'operator'])
  })

  it('a call for an API that no worker serves waits, and no answer names a time at which it would be sent', async () => {
    for (const worker of gateway.workers) worker.kill('SIGTERM')
    const options = { token: account.token, headers: { prefer: 'respond-async' } }
    let started = await send(gateway, '/v1/call/orders/list-orders', options)
    await until(async () => {
      if (started.status !== 202) started = await send(gateway, '/v1/call/orders/list-orders', options)
      return started.status === 202
    })
    assert.deepEqual(Object.keys(started.body), ['status', 'id', 'location'])
    const seen = await send(gateway, started.body.location, { token: account.token })
    assert.equal('etaMs' in seen.body, false)
    const { now } = (await send(gateway, '/v1/catalog/orders', { token: account.token })).body
    assert.deepEqual([now.waitMs, now.limitedBy], [null, 'operator'])
  })
})
