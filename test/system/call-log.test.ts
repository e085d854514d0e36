import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { type Account, type Answer, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { MODERN, withMcpClient } from '../support/mcp-client.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { startServices } from '../support/services.ts'
import { type Stage, startStage, UNLIMITED } from '../support/stage.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'

/** This text is in parameters, bodies and answers, and must be in no row. */
const MARK = `Zanzibar${randomUUID().slice(0, 8)}`

describe('the log of calls of an account', () => {
  let stage: Stage
  let gateway: Gateway
  let account: Account

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      timeoutMs: 4_000,
      caps: { 'dog-images': 'concurrency=50,1000/1', trivia: 'concurrency=4,1000/1' },
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000,"perMonth":100000,"inFlight":50}}' },
    })
    ;({ gateway, account } = stage)
    stage.upstream.play('dog-images', () => ({ status: 'success', message: `https://images.dog.ceo/${MARK}.jpg` }))
    stage.upstream.play('trivia', (_request, response) => {
      response.statusCode = 500
      response.end(MARK)
    })
  })
  after(() => stage.stop())

  const breed = (name = MARK.toLowerCase().replace(/\d/g, 'x')) => `/v1/call/dog-images/breed?breed=${name}`
  const read = (path: string, by: Account = account, headers = {}) => send(gateway, path, { token: by.token, headers })

  /** The answer to a look-up after the row has been written. */
  async function logged(id: string, by: Account = account): Promise<Answer> {
    let answer = await read(`/v1/logs/${id}`, by)
    await until(async () => {
      answer = await read(`/v1/logs/${id}`, by)
      return answer.status === 200
    }, 10_000)
    return answer
  }

  const idsOf = ({ headers }: Answer): { call: string; request: string } => ({
    call: headers.get('x-call-id') ?? '',
    request: headers.get('x-request-id') ?? '',
  })

  it('a call is found by either of its ids, with where its time went', async () => {
    const answer = await send(gateway, breed(), { key: account.live })
    assert.equal(answer.status, 200, answer.text)
    const { call: id, request } = idsOf(answer)
    const { call } = (await logged(id)).body
    assert.deepEqual(
      [call.id, call.requestId, call.api, call.endpoint, call.status, call.code, call.mode, call.via],
      [id, request, 'dog-images', '/breed', 200, null, 'live', 'call'],
    )
    assert.equal(call.attempts, 1)
    assert.equal(call.key.lastFour, account.live.slice(-4))
    assert.equal(call.bytes, answer.text.length)
    const parts = [call.admissionMs, call.queueMs, call.permitMs, call.upstreamMs]
    assert.ok(parts.every((ms) => ms >= 0) && call.upstreamMs <= call.totalMs, JSON.stringify(call))
    assert.deepEqual((await read(`/v1/logs/${request}`)).body.calls, [call])
  })

  it('the log of calls has the reason of a failed call and of a refused call', async () => {
    const failed = await send(gateway, '/v1/call/trivia/questions', { key: account.live })
    const { call } = (await logged(idsOf(failed).call)).body
    assert.deepEqual([call.status, call.code, call.cause], [502, 'UPSTREAM_ERROR', 'HTTP 500'])
    const refused = await send(gateway, `/v1/call/dog-images/breed?${MARK}=1`, { key: account.test })
    assert.equal(refused.status, 400)
    const { call: row } = (await logged(idsOf(refused).call)).body
    assert.deepEqual([row.code, row.endpoint, row.mode, row.queueMs], ['INVALID_PARAMETER', '/breed', 'test', null])
    const unknown = await send(gateway, `/v1/call/dog-images/${MARK}`, { key: account.test })
    assert.equal((await logged(idsOf(unknown).call)).body.call.endpoint, null)
  })

  it('the calls of a batch share the id of its request, those refused before they had an id too', async () => {
    const calls = [
      { api: 'dog-images', endpoint: '/breed', parameters: { breed: `${MARK.toLowerCase().replace(/\d/g, 'y')}` } },
      { api: MARK, endpoint: '/none' },
    ]
    const answer = await send(gateway, '/v1/batch', {
      ...{ key: account.live, body: { calls }, headers: { accept: 'application/json' } },
    })
    const { body } = await logged(idsOf(answer).request)
    await until(async () => (await read(`/v1/logs/${idsOf(answer).request}`)).body.calls.length === 2, 5_000)
    assert.equal(body.calls[0].via, 'batch')
    const { calls: rows } = (await read(`/v1/logs/${idsOf(answer).request}`)).body
    assert.deepEqual(rows.map(({ api, code }: { api: string; code: string }) => [api, code]).sort(), [
      ['-', 'API_NOT_FOUND'],
      ['dog-images', null],
    ])
  })

  it('a call of an MCP tool names the tool, and a call without waiting is written by its worker', async () => {
    await withMcpClient(
      `${gateway.url}/mcp`,
      { 'x-api-key': account.test },
      { versionNegotiation: { mode: { pin: MODERN } } },
      async ({ client }) => {
        const parameters = { breed: 'hound' }
        await client.callTool({ name: 'call_api', arguments: { api: 'dog-images', endpoint: '/breed', parameters } })
      },
    )
    const byMcp = async () => (await read('/v1/logs?via=mcp')).body.calls
    await until(async () => (await byMcp()).length === 1, 10_000)
    const [{ tool, mode }] = await byMcp()
    assert.deepEqual([tool, mode], ['call_api', 'test'])
    const taken = await send(gateway, breed('terrier'), { key: account.live, headers: { prefer: 'respond-async' } })
    assert.equal(taken.status, 202)
    const { call } = (await logged(idsOf(taken).call)).body
    assert.deepEqual([call.status, call.requestId, call.via], [200, idsOf(taken).request, 'call'])
    assert.ok(call.admissionMs > 0, `${call.admissionMs}`)
  })

  it('filters and pages find the calls, and lines of an export have them all', async () => {
    const person = await signUp(gateway)
    for (let made = 0; made < 7; made += 1) await send(gateway, breed('poodle'), { key: person.test })
    await send(gateway, '/v1/call/weather/current?latitude=1&longitude=2', { key: person.test })
    const list = async (query: string, headers = {}) => await read(`/v1/logs?${query}`, person, headers)
    await until(async () => (await list('mode=test')).body.calls.length === 8, 10_000)
    assert.equal((await list('api=weather')).body.calls.length, 1)
    assert.equal((await list('status=2xx&endpoint=/breed')).body.calls.length, 7)
    assert.equal((await list('status=4xx')).body.calls.length, 0)
    assert.equal((await list('key=session')).body.calls.length, 0)
    const first = await list('api=dog-images&limit=4')
    const [, next = ''] = /<\/v1\/logs\?([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? []
    assert.match(next, /api=dog-images/)
    const second = await list(next)
    assert.equal(second.body.calls.length, 3)
    assert.equal(second.headers.get('link'), null)
    const { headers, text } = await readLines(person)
    assert.equal(headers.get('content-type'), 'application/x-ndjson')
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(lines.pop(), { done: true })
    assert.deepEqual(lines, (await list('')).body.calls)
    for (const wrong of [
      'from=yesterday',
      'from=0000-01-01',
      'to=2026-13-01',
      'from=2026-02-30',
      'api=%00',
      'api=%FF',
      'key=%27',
      'status=9xx',
      'limit=101',
    ])
      assert.equal((await list(wrong)).status, 400, wrong)
    assert.equal((await list('cursor=1_x')).status, 400)
    assert.equal((await list(`cursor=999999999999999_${randomUUID()}`)).status, 200)
  })

  const readLines = async (by: Account) => {
    const headers = { authorization: `Bearer ${by.token}`, accept: 'application/x-ndjson' }
    const response = await fetch(`${gateway.url}/v1/logs`, { headers })
    return { headers: response.headers, text: await response.text() }
  }

  /**
   * Makes a log of many pages of several megabytes, of which a client that does not read gets the
   * first pages alone.
   */
  const fillLog = (of: Account, keyId: string | null = null) =>
    sql(
      gateway,
      `insert into call_log (id, at, account_id, key_id, status, total_ms, mode, via, slug, endpoint)
       select gen_random_uuid(), now(), $1, $2, 200, 1, 'live', 'call', 'weather', repeat('x', 10000)
         from generate_series(1, 4000)`,
      [of.id, keyId],
    )
  const beginExport = async (by: Account, path: string) => {
    const headers = { authorization: `Bearer ${by.token}`, accept: 'application/x-ndjson' }
    const answer = await fetch(`${gateway.url}${path}`, { headers })
    assert.equal(answer.status, 200)
    return answer
  }

  it('an export ends when the session ends that began it', async () => {
    const person = await signUp(gateway)
    await fillLog(person)
    const answers = [await beginExport(person, '/v1/logs'), await beginExport(person, '/v1/me/export')]
    assert.equal((await send(gateway, '/v1/auth/logout', { method: 'POST', token: person.token })).status, 204)
    for (const answer of answers) await assert.rejects(answer.text())
  })

  it('an export of the calls of a team ends when its reader leaves the team', async () => {
    const [owner, admin] = [await signUp(gateway), await signUp(gateway)]
    const { team } = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'Team' } })).body
    const members = `/v1/teams/${team.id}/members`
    const invited = { token: owner.token, body: { email: admin.email, role: 'admin' } }
    assert.equal((await send(gateway, members, invited)).status, 201)
    const { body: key } = await send(gateway, '/v1/keys', { token: owner.token, body: { teamId: team.id } })
    await fillLog(owner, key.id)
    const answer = await beginExport(admin, `/v1/logs?teamId=${team.id}`)
    const left = { method: 'DELETE', token: owner.token }
    assert.equal((await send(gateway, `${members}/${admin.id}`, left)).status, 204)
    await assert.rejects(answer.text())
  })

  it('nobody sees a call of another account, by either id, in the list or in an export', async () => {
    const [stranger, answer] = [await signUp(gateway), await send(gateway, breed(), { key: account.test })]
    const { call, request } = idsOf(answer)
    await logged(call)
    for (const id of [call, request, call.toUpperCase(), 'call_1', "'", 'req_%00']) {
      const { status, body } = await read(`/v1/logs/${id}`, stranger)
      assert.deepEqual([status, body.code], [404, 'CALL_NOT_FOUND'], id)
    }
    assert.deepEqual((await read('/v1/logs', stranger)).body.calls, [])
    assert.equal((await readLines(stranger)).text, '{"done":true}\n')
    const noKey = await send(gateway, '/v1/logs', { headers: { 'x-api-key': account.live } })
    assert.equal(noKey.status, 401)
  })

  it("the managers of a team see the calls of the team's keys, and its members do not", async () => {
    const [owner, admin, member] = await Promise.all([signUp(gateway), signUp(gateway), signUp(gateway)])
    const { team } = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'Team' } })).body
    for (const [person, role] of [
      [admin, 'admin'],
      [member, 'member'],
    ] as const) {
      const body = { email: person.email, role }
      assert.equal((await send(gateway, `/v1/teams/${team.id}/members`, { token: owner.token, body })).status, 201)
    }
    const made = await send(gateway, '/v1/keys', { token: admin.token, body: { teamId: team.id, environment: 'test' } })
    const answer = await send(gateway, breed('husky'), { key: made.body.key })
    await send(gateway, breed('husky'), { key: owner.test })
    const { call } = (await logged(idsOf(answer).call, admin)).body
    assert.equal(call.key.id, made.body.id)
    for (const person of [owner, admin]) {
      const { calls } = (await read(`/v1/logs?teamId=${team.id}`, person)).body
      assert.deepEqual(calls, [call])
    }
    assert.equal((await read(`/v1/logs?teamId=${team.id}`, member)).status, 403)
    assert.equal((await read(`/v1/logs?teamId=${team.id}`, account)).status, 404)
    assert.equal((await read(`/v1/logs/${call.id}`, member)).status, 404)
    await until(async () => (await read('/v1/logs', owner)).body.calls.length === 2, 10_000)
  })

  it('a gateway whose log is switched off says so', async () => {
    const url = await gateway.startWeb({ CALL_LOG_DAYS: '0' })
    for (const path of ['/v1/logs', '/v1/logs/call_1']) {
      const { status, body } = await send(gateway, path, { token: account.token, url })
      assert.equal(status, 404)
      assert.match(body.hint, /CALL_LOG_DAYS/)
    }
  })

  it('no row holds a parameter, a body, a key, or an address', async () => {
    const rows = await sql<{ text: string }>(gateway, 'select call_log::text as text from call_log')
    assert.ok(rows.length > 15, `${rows.length} rows`)
    const text = rows
      .map((row) => row.text)
      .join('\n')
      .toLowerCase()
    const secrets = [MARK.slice(0, 8), 'hound', 'poodle', 'husky', 'agw_', '127.0.0.1', 'example.com', account.email]
    for (const secret of secrets) assert.ok(!text.includes(secret.toLowerCase()), secret)
  })
})

it('no call fails or is lost to the log while Postgres is silent, and its row is there when Postgres is back', async (t) => {
  const services = await startServices()
  const proxy = await startPostgresProxy(services.databaseUrl)
  const upstream = await startUpstreamServer()
  upstream.play('dog-images', () => ({ status: 'success', message: 'https://images.dog.ceo/a.jpg' }))
  const gateway = await startGateway({
    isInProcess: true,
    services: { ...services, databaseUrl: proxy.url },
    environment: {
      ...upstream.environment('dog-images'),
      PLAN_LIMITS: UNLIMITED,
      UPSTREAM_DOG_IMAGES_CAPS: 'concurrency=50,100000/1',
    },
  })
  t.after(async () => {
    await gateway.stop()
    await upstream.close()
    await proxy.close()
    await services.stop()
  })
  const account = await signUp(gateway)
  const call = async () => (await send(gateway, '/v1/call/dog-images/random', { key: account.live })).status
  assert.equal(await call(), 200)
  const before = await rowsOf(services.databaseUrl)
  proxy.isSilent = true
  let made = 1
  const statuses = new Set<number>()
  // Longer than a statement may take, because the rows of several writes wait.
  for (const end = performance.now() + 4_000; performance.now() < end; made += 10) {
    for (const status of await Promise.all(Array.from({ length: 10 }, call))) statuses.add(status)
  }
  assert.deepEqual([...statuses], [200])
  assert.ok((await rowsOf(services.databaseUrl)) <= before + 1)
  proxy.isSilent = false
  proxy.resetAll()
  await until(async () => (await rowsOf(services.databaseUrl)) === made, 20_000)
})

async function rowsOf(databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query('select count(*)::int as rows from call_log')
  await client.end()
  return rows[0].rows
}
