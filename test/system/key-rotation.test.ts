import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Account, createKey, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

const CALL = '/v1/call/weather/current?latitude=40.7&longitude=-74'

describe('a key that is changed or rotated', () => {
  let gateway: Gateway

  before(async () => {
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 2,
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000}}' },
    })
  })
  after(async () => await gateway.stop())

  const rotate = (account: Account, id: string, body: object = {}, url = gateway.url) =>
    send(gateway, `/v1/keys/${id}/rotate`, { token: account.token, body, url })
  const change = (account: Account, id: string, body: object) =>
    send(gateway, `/v1/keys/${id}`, { method: 'PATCH', token: account.token, body })
  const statusesOf = (key: string) =>
    Promise.all(gateway.urls.map(async (url) => (await send(gateway, CALL, { key, url })).status))
  const listed = async ({ token }: Account, id: string) =>
    (await send(gateway, '/v1/keys', { token })).body.keys.find((key: { id: string }) => key.id === id)

  it('in the overlap both keys work on every node, and with an overlap of 0 the old key is refused at once', async () => {
    const account = await signUp(gateway)
    const { body: first } = await send(gateway, '/v1/keys', {
      token: account.token,
      body: { label: 'of the robot', environment: 'test' },
    })
    assert.deepEqual(await statusesOf(first.key), [200, 200])
    const { status, body: second } = await rotate(account, first.id, { overlapSeconds: 60 })
    assert.equal(status, 201)
    assert.deepEqual([second.previous.id, second.keyPrefix], [first.id, 'agw_test_'])
    const leftMs = Date.parse(second.previous.expiresAt) - Date.now()
    assert.ok(leftMs > 50_000 && leftMs < 70_000, `${leftMs}`)
    assert.deepEqual([...(await statusesOf(first.key)), ...(await statusesOf(second.key))], [200, 200, 200, 200])
    const [old, made] = [await listed(account, first.id), await listed(account, second.id)]
    assert.deepEqual([old.replacedBy, made.replacedBy, made.label], [second.id, null, 'of the robot'])

    const { body: third } = await rotate(account, second.id, { overlapSeconds: 0 })
    assert.deepEqual([...(await statusesOf(second.key)), ...(await statusesOf(third.key))], [401, 401, 200, 200])
    assert.deepEqual(await statusesOf(first.key), [200, 200], 'the overlap of the first is its own')
    // The clock of the database ends the key.
    await sql(gateway, "update api_keys set expires_at = now() - interval '1 second' where id = $1", [first.id])
    await change(account, third.id, { label: 'a change that every node hears of' })
    assert.deepEqual(await statusesOf(first.key), [401, 401])
  })

  it('a new key finds and cancels the asynchronous calls of the key that it replaces, and no other key does', async () => {
    const account = await signUp(gateway)
    const { body: team } = await send(gateway, '/v1/teams', { token: account.token, body: { name: 'Robots' } })
    for (const body of [{ apis: ['weather'] }, { limits: { perMinute: 100 } }, { teamId: team.team.id }]) {
      const make = async () =>
        (await send(gateway, '/v1/keys', { token: account.token, body: { ...body, environment: 'test' } })).body
      const [first, other] = [await make(), await make()]
      const headers = { prefer: 'respond-async', 'x-gateway-scenario': 'slow-20000' }
      const { body: accepted } = await send(gateway, CALL, { key: first.key, headers })
      const { body: second } = await rotate(account, first.id)
      const { body: third } = await rotate(account, second.id, { overlapSeconds: 0 })
      // The clock of Postgres was set back before the last rotation.
      await sql(gateway, "update api_keys set created_at = now() - interval '1 hour' where id = $1", [third.id])
      const look = async (key: string, method = 'GET') =>
        (await send(gateway, accepted.location, { key, method, url: gateway.urls[1] ?? gateway.url })).status
      assert.deepEqual(
        [await look(first.key), await look(third.key), await look(other.key), await look(other.key, 'DELETE')],
        [202, 202, 404, 404],
        JSON.stringify(body),
      )
      assert.equal(await look(third.key, 'DELETE'), 204)
      // A key that leaked, and was therefore replaced, finds nothing that its successor does.
      const { body: ofThird } = await send(gateway, CALL, { key: third.key, headers: { prefer: 'respond-async' } })
      const replaced = await send(gateway, ofThird.location, { key: first.key })
      assert.deepEqual([replaced.status, replaced.body.code], [404, 'CALL_NOT_FOUND'], JSON.stringify(body))
    }
  })

  it('of two rotations at once one wins and the other gets 409', async () => {
    const account = await signUp(gateway)
    const { id } = await createKey(gateway, account.token, 'test')
    const answers = await Promise.all(gateway.urls.map((url) => rotate(account, id, {}, url)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409])
    const lost = answers.find(({ status }) => status === 409)
    assert.equal(lost?.body.code, 'KEY_ALREADY_ROTATED')
    const later = await change(account, id, { expiresAt: new Date(Date.now() + 9e9).toISOString() })
    assert.deepEqual([later.status, later.body.code], [409, 'KEY_ALREADY_ROTATED'], 'the overlap cannot be made longer')
    assert.equal((await change(account, id, { label: 'old' })).status, 200)
  })

  it('a new key lives as long as the old key was made for, unless the rotation says otherwise', async () => {
    const account = await signUp(gateway)
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    const make = async (expiresAt?: string) =>
      (await send(gateway, '/v1/keys', { token: account.token, body: expiresAt ? { expiresAt } : {} })).body.id
    const expiryAfter = async (id: string, body: object) =>
      (await listed(account, (await rotate(account, id, body)).body.id)).expiresAt
    assert.equal(await expiryAfter(await make(), {}), null)
    assert.equal(await expiryAfter(await make(inDays(3)), { expiresAt: null }), null)
    const inherited = Date.parse(await expiryAfter(await make(inDays(3)), {})) - Date.now()
    assert.ok(Math.abs(inherited / 86_400_000 - 3) < 0.01, `${inherited}`)
    // If a key expires before the overlap is over, it keeps its own end.
    const soon = inDays(0.001)
    const { body } = await rotate(account, await make(soon), { overlapSeconds: 604_800 })
    assert.equal(body.previous.expiresAt, soon)
  })

  it('fifty keys that are all rotated go on with their successors, and no account has more than fifty in overlap', async () => {
    const account = await signUp(gateway)
    const { body } = await send(gateway, '/v1/keys', { token: account.token })
    const ids: string[] = body.keys.map(({ id }: { id: string }) => id)
    while (ids.length < 50) ids.push((await createKey(gateway, account.token, 'test')).id)
    assert.equal((await send(gateway, '/v1/keys', { token: account.token, body: {} })).status, 409)
    const made: string[] = []
    for (const id of ids) {
      const rotated = await rotate(account, id)
      assert.equal(rotated.status, 201, rotated.text)
      made.push(rotated.body.id)
    }
    const more = await rotate(account, made[0] ?? '')
    assert.deepEqual([more.status, more.body.code], [409, 'KEY_LIMIT_REACHED'])
    const another = await send(gateway, '/v1/keys', { token: account.token, body: {} })
    assert.equal(another.status, 409, 'the fifty new keys count')
    await send(gateway, `/v1/keys/${ids[0]}`, { method: 'DELETE', token: account.token })
    assert.equal((await rotate(account, made[0] ?? '')).status, 201)
  })

  it('label and expiry are changed alone or together, an earlier expiry holds on every node, and what is wrong is named', async () => {
    const account = await signUp(gateway)
    const { id, key } = await createKey(gateway, account.token, 'test')
    assert.deepEqual(await statusesOf(key), [200, 200])
    const { body } = await change(account, id, { label: 'renamed' })
    assert.deepEqual([body.id, body.label, body.expiresAt], [id, 'renamed', null])
    const expiresAt = new Date(Date.now() + 5_000).toISOString()
    assert.equal((await change(account, id, { expiresAt })).body.expiresAt, expiresAt)
    assert.equal((await change(account, id, { label: null, expiresAt: null })).body.expiresAt, null)
    for (const [wrong, param] of [
      [{ expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
      [{ expiresAt: '2026-02-30T00:00:00Z' }, 'expiresAt'],
      [{ labl: 'x' }, 'labl'],
      [{}, ''],
    ] as const) {
      const refused = await change(account, id, wrong)
      assert.equal(refused.status, 400, JSON.stringify(wrong))
      assert.ok(refused.text.includes(param))
    }
    for (const overlapSeconds of [-1, 604_801, 1.5, '60'])
      assert.equal((await rotate(account, id, { overlapSeconds })).status, 400, String(overlapSeconds))
    await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: account.token })
    for (const answer of [await change(account, id, { label: 'x' }), await rotate(account, id)])
      assert.deepEqual([answer.status, answer.body.code], [404, 'KEY_NOT_FOUND'])
  })

  it('an expired key is neither changed nor rotated, so that nobody brings it back', async () => {
    const account = await signUp(gateway)
    const { id } = await createKey(gateway, account.token, 'test')
    await sql(gateway, "update api_keys set expires_at = now() - interval '1 second' where id = $1", [id])
    assert.equal((await change(account, id, { expiresAt: null })).status, 404)
    assert.equal((await rotate(account, id)).status, 404)
  })
})
