import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { until } from '../support/gateway.ts'
import { type Stage, startStage } from '../support/stage.ts'

const CALL = '/v1/call/dog-images/random'
const LISTED = '203.0.113.9'
const OTHER = '198.51.100.9'
const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const callTool = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
const dogs = (...breeds: string[]) => ({
  calls: breeds.map((breed) => ({ api: 'dog-images', endpoint: '/breed', parameters: { breed } })),
})

describe('a key with a list of addresses', () => {
  let stage: Stage
  let account: Account
  let hold: Promise<unknown> | undefined

  before(async () => {
    stage = await startStage({
      caps: { 'dog-images': 'concurrency=50,1000/1' },
      webNodes: 2,
      isInProcess: true,
      environment: { TRUST_PROXY: '127.0.0.1' },
    })
    stage.upstream.play('dog-images', async () => {
      await hold
      return { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }
    })
    ;({ account } = stage)
  })
  after(() => stage.stop())

  const makeKey = async (body: object, { token } = account) =>
    (await send(stage.gateway, '/v1/keys', { token, body })).body as { id: string; key: string }
  const patch = (id: string, body: object, { token } = account) =>
    send(stage.gateway, `/v1/keys/${id}`, { method: 'PATCH', token, body })
  const listed = async (id: string) =>
    (await send(stage.gateway, '/v1/keys', { token: account.token })).body.keys.find(
      (key: { id: string }) => key.id === id,
    ).addresses
  /** As the proxy on the machine of the gateway passes the request of a client on. */
  const from = (address: string, key: string, { path = CALL, node = 0, ...more }: Record<string, unknown> = {}) =>
    send(stage.gateway, String(path), {
      ...{ key, url: stage.gateway.urls[Number(node)] ?? '', headers: { 'x-forwarded-for': address } },
      ...more,
    })
  const onBoth = async (address: string, key: string) =>
    await Promise.all([0, 1].map(async (node) => (await from(address, key, { node })).status))
  const refusalOf = ({ status, body }: Answer) => [status, (body.error?.code ?? body.code) as string]
  const FORBIDDEN = [403, 'KEY_ADDRESS_FORBIDDEN']

  it('a key with a list of addresses is refused from other addresses on every route, at no cost, and the message names the address of the request', async () => {
    const owner = await signUp(stage.gateway)
    for (const environment of ['live', 'test']) {
      const { key } = await makeKey({ environment, addresses: ['203.0.113.0/24'] }, owner)
      const later = await from(LISTED, key, { headers: { 'x-forwarded-for': LISTED, prefer: 'respond-async' } })
      assert.equal(later.status, 202)
      const path = String(later.headers.get('location'))
      await until(async () => (await from(LISTED, key, { path })).status === 200)
      const before = (await send(stage.gateway, '/v1/billing/status', { token: owner.token })).body.usage.used
      const arrived = stage.upstream.arrivalsOf('dog-images').length
      for (const request of [
        { path: CALL },
        { path: CALL, method: 'HEAD' },
        { path: CALL, body: {} },
        { path: '/v1/batch', body: dogs('hound') },
        { path, method: 'GET' },
        { path, method: 'DELETE' },
        { path: '/mcp', body: listTools },
        { path: '/mcp/dog-images', body: listTools },
        { path: '/v1/catalog/dog-images' },
      ]) {
        const refused = await from(OTHER, key, request)
        if (request.method === 'HEAD') {
          assert.equal(refused.status, 403)
          continue
        }
        assert.deepEqual(refusalOf(refused), FORBIDDEN, request.path)
        const { message, hint } = refused.body.code === undefined ? refused.body.error : refused.body
        assert.match(message, /^The owner of this key does not allow calls from the address 198\.51\.100\.9\.$/)
        assert.match(hint, / address=198\.51\.100\.9$/)
        // Whoever has the key learns nothing of the list.
        assert.ok(!refused.text.includes('203.0.113'))
      }
      const { body } = await send(stage.gateway, '/v1/billing/status', { token: owner.token })
      assert.deepEqual([body.usage.used, stage.upstream.arrivalsOf('dog-images').length], [before, arrived])
      // Before the right to call an API, and after the question whether the endpoint exists.
      assert.deepEqual(refusalOf(await from(OTHER, key, { path: '/v1/call/nothing/here' })), [404, 'API_NOT_FOUND'])
      assert.deepEqual(refusalOf(await from(OTHER, key, { path: '/v1/call/news/top' })), FORBIDDEN)
      assert.deepEqual(refusalOf(await from(OTHER, key, { path: '/v1/call/weather/current?latitude=x' })), FORBIDDEN)
      // As the public sees it, which a wrong key does too.
      assert.ok((await from(OTHER, key, { path: '/v1/catalog' })).body.total > 20)
      assert.equal((await from(LISTED, key, { path })).status, 200)
    }
  })

  it('a key with a list of addresses works from its addresses in every form in which a proxy writes them, by call, batch and tool', async () => {
    const { key } = await makeKey({ addresses: ['203.0.113.0/24', '2001:db8::7', '192.0.2.64/26'] })
    for (const address of [
      ...[LISTED, `${LISTED}:4711`, `::ffff:${LISTED}`, `[::ffff:${LISTED}]:4711`, '::FFFF:CB00:7109', '192.0.2.127'],
      ...[
        '2001:db8::7',
        '2001:DB8:0:0::7',
        '[2001:db8::7]',
        '[2001:db8::7]:443',
        '2001:db8::7%eth0',
        `${OTHER}, ${LISTED}`,
      ],
    ])
      assert.deepEqual(await onBoth(address, key), [200, 200], address)
    for (const address of [
      ...['203.0.114.0', '192.0.2.63', '2001:db8::8', '::ffff:198.51.100.9', '64:ff9b::cb00:7109'],
      ...['unknown', '_hidden', '', `${LISTED}, ${OTHER}`, `${LISTED}, unknown`, `${LISTED}.`, '127.0.0.1'],
    ])
      assert.deepEqual(await onBoth(address, key), [403, 403], address)
    const batch = await from(LISTED, key, {
      ...{ path: '/v1/batch', body: dogs('poodle', 'boxer') },
      headers: { 'x-forwarded-for': LISTED, accept: 'application/json' },
    })
    assert.deepEqual([batch.status, batch.body.ok], [200, 2])
    const params = { name: 'call_api', arguments: { api: 'dog-images', endpoint: '/random', parameters: {} } }
    const tool = await from(LISTED, key, { path: '/mcp', body: { ...callTool, params } })
    assert.equal(tool.body.result.isError ?? false, false, tool.text)
  })

  it('a key with a list of addresses is checked against the address of the connection if no proxy is trusted, whatever headers the client sends', async () => {
    const url = await stage.gateway.startWeb({ TRUST_PROXY: '' })
    const { id, key } = await makeKey({ addresses: ['203.0.113.0/24'] })
    for (const headers of [
      { 'x-forwarded-for': LISTED },
      { 'x-real-ip': LISTED, forwarded: `for=${LISTED}`, 'true-client-ip': LISTED, 'cf-connecting-ip': LISTED },
    ]) {
      const refused = await send(stage.gateway, CALL, { key, url, headers })
      assert.deepEqual(refusalOf(refused), FORBIDDEN)
      assert.match(refused.body.error.hint, /address=127\.0\.0\.1/)
    }
    await patch(id, { addresses: ['127.0.0.0/8'] })
    assert.equal((await send(stage.gateway, CALL, { key, url, headers: { 'x-forwarded-for': OTHER } })).status, 200)
    assert.deepEqual(refusalOf(await from(OTHER, key)), FORBIDDEN)
  })

  it('a change of the list of addresses of a key applies on every node from the next request on, other changes keep the list, and null removes it', async () => {
    const { id, key } = await makeKey({})
    assert.deepEqual(await onBoth(OTHER, key), [200, 200])
    const narrowed = await patch(id, {
      addresses: ['203.0.113.9/24', '203.0.113.0/24', '::ffff:192.0.2.1', '2001:DB8::/32'],
    })
    assert.deepEqual(narrowed.body.addresses, ['203.0.113.0/24', '192.0.2.1', '2001:db8::/32'])
    assert.deepEqual(
      [await onBoth(OTHER, key), await onBoth('192.0.2.1', key)],
      [
        [403, 403],
        [200, 200],
      ],
    )
    assert.deepEqual((await patch(id, { label: 'x', apis: ['dog-images'] })).body.addresses, narrowed.body.addresses)
    assert.deepEqual([await onBoth(OTHER, key), await listed(id)], [[403, 403], narrowed.body.addresses])
    await patch(id, { addresses: [OTHER] })
    assert.deepEqual(
      [await onBoth(OTHER, key), await onBoth(LISTED, key)],
      [
        [200, 200],
        [403, 403],
      ],
    )
    const { body: exported } = await send(stage.gateway, '/v1/me/export', { token: account.token })
    assert.deepEqual(exported.keys.find((each: { id: string }) => each.id === id).addresses, [OTHER])
    assert.equal((await patch(id, { addresses: null })).body.addresses, null)
    assert.deepEqual(await onBoth(LISTED, key), [200, 200])
  })

  it('a key and the key that replaces it have the same list of addresses, a change of one changes both, and a revoked key gets 401 from everywhere', async () => {
    const old = await makeKey({ addresses: ['203.0.113.0/24'] })
    const rotate = (id: string) =>
      send(stage.gateway, `/v1/keys/${id}/rotate`, { token: account.token, body: { overlapSeconds: 60 } })
    const { body: made } = await rotate(old.id)
    for (const { key } of [old, made] as { key: string }[])
      assert.deepEqual(
        [await onBoth(LISTED, key), await onBoth(OTHER, key)],
        [
          [200, 200],
          [403, 403],
        ],
      )
    await patch(made.id, { addresses: [OTHER] })
    assert.deepEqual([await listed(old.id), await listed(made.id)], [[OTHER], [OTHER]])
    for (const { key } of [old, made] as { key: string }[])
      assert.deepEqual(
        [await onBoth(LISTED, key), await onBoth(OTHER, key)],
        [
          [403, 403],
          [200, 200],
        ],
      )
    await send(stage.gateway, `/v1/keys/${old.id}`, { method: 'DELETE', token: account.token })
    assert.deepEqual(
      [await onBoth(LISTED, old.key), await onBoth(OTHER, old.key)],
      [
        [401, 401],
        [401, 401],
      ],
    )
    assert.deepEqual(await onBoth(OTHER, made.key), [200, 200])
  })

  it('a list of addresses restricts only its own key, also the key of a team, and not sessions or other keys of the account', async () => {
    const { team } = (await send(stage.gateway, '/v1/teams', { token: account.token, body: { name: 'Team' } })).body
    const { id, key } = await makeKey({ teamId: team.id, addresses: ['203.0.113.0/24'] })
    assert.deepEqual(
      [await onBoth(LISTED, key), await onBoth(OTHER, key)],
      [
        [200, 200],
        [403, 403],
      ],
    )
    const { body } = await send(stage.gateway, `/v1/teams/${team.id}`, { token: account.token })
    assert.deepEqual(body.keys.find((each: { id: string }) => each.id === id).addresses, ['203.0.113.0/24'])
    assert.deepEqual(await onBoth(OTHER, account.live), [200, 200])
    const headers = { 'x-forwarded-for': OTHER }
    assert.equal((await send(stage.gateway, CALL, { token: account.token, headers })).status, 200)
  })

  it('a change of the list of addresses does not end calls that the key made before, but ends the rest of a batch from an address that is no longer in the list', async () => {
    const { id, key } = await makeKey({ addresses: [LISTED], limits: { inFlight: 2 } })
    const gate = Promise.withResolvers<void>()
    hold = gate.promise
    const arrived = stage.upstream.arrivalsOf('dog-images').length
    const later = await from(LISTED, key, { headers: { 'x-forwarded-for': LISTED, prefer: 'respond-async' } })
    const batch = from(LISTED, key, {
      ...{ path: '/v1/batch', body: { ...dogs('akita', 'beagle', 'borzoi'), take: 'fit' } },
      headers: { 'x-forwarded-for': LISTED, accept: 'application/json' },
    })
    await until(() => stage.upstream.arrivalsOf('dog-images').length === arrived + 2)
    await patch(id, { addresses: [OTHER] })
    gate.resolve()
    hold = undefined
    const { results } = (await batch).body
    assert.deepEqual(
      results.map(({ status, error }: { status: number; error?: { code: string } }) => error?.code ?? status),
      [...[200, 'KEY_ADDRESS_FORBIDDEN', 'KEY_ADDRESS_FORBIDDEN']],
    )
    const path = String(later.headers.get('location'))
    await until(async () => (await from(OTHER, key, { path })).status === 200)
    assert.deepEqual(refusalOf(await from(LISTED, key, { path })), FORBIDDEN)
  })

  it('endless requests with a stolen key from other addresses use up none of the limits of its owner', async () => {
    const url = await stage.gateway.startWeb({ ACCOUNT_REQUESTS_PER_SECOND: '1' })
    const owner = await signUp(stage.gateway)
    const { key } = await makeKey({ addresses: [LISTED] }, owner)
    const send = async (address: string, path: string, body?: object) =>
      (await from(address, key, { path, url, ...(body ? { body } : {}) })).status
    for (const [path, body] of [[CALL], ['/mcp', listTools]] as [string, object?][]) {
      const statuses = []
      for (let times = 0; times < 8; times += 1) statuses.push(await send(OTHER, path, body))
      assert.deepEqual([statuses[0], statuses.includes(429)], [403, true], statuses.join())
      assert.equal(await send(LISTED, path, body), 200, path)
    }
  })

  it('a key with a list of addresses is not created or changed if the list is empty or has an invalid item', async () => {
    const { id } = await makeKey({ addresses: [LISTED] })
    const many = Array.from({ length: 21 }, (_, index) => `203.0.113.${index}`)
    for (const [addresses, message] of [
      [[], /^Member addresses must have at least 1 member, or be null: everywhere\.$/],
      [many, /at most 20 members/],
      [LISTED, /must be a list/],
      [[7], /string/],
      [[null], /string/],
      [[''], /^Item 1 of the list/],
      [[LISTED, 'fe80::1%eth0'], /^Item 2 of the list/],
      [['203.0.113.0/33'], /^Item 1 of the list/],
      [['a'.repeat(65)], /at most 64 characters/],
      [{ 0: LISTED }, /must be a list/],
    ] as [unknown, RegExp][]) {
      for (const refused of [
        await patch(id, { addresses }),
        await send(stage.gateway, '/v1/keys', { token: account.token, body: { addresses } }),
      ]) {
        assert.deepEqual([refused.status, refused.body.code], [400, 'VALIDATION_ERROR'], JSON.stringify(addresses))
        assert.match(refused.body.message, message)
        assert.match(refused.body.hint, /param=addresses/)
      }
    }
    assert.deepEqual(await listed(id), [LISTED])
    const all = await makeKey({ addresses: many.slice(1).with(0, '0.0.0.0/0') })
    assert.deepEqual([(await listed(all.id)).length, await onBoth(OTHER, all.key)], [20, [200, 200]])
  })
})
