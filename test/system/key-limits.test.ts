import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { accountKeys } from '../../src/redis/keys.ts'
import { type Account, type Answer, send, sendPatiently, signUp, sql } from '../support/client.ts'
import { until } from '../support/gateway.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { fc, propertyRuns } from '../support/property.ts'
import { type Stage, startStage } from '../support/stage.ts'

/**
 * Its source fails in these tests, so that its breaker opens. Calls of the weather get an answer.
 */
const FACT = '/v1/call/random-facts/random'
const place = { latitude: 1, longitude: 2, elevation: 3, timezone: 'GMT', utc_offset_seconds: 0 }
const sky = {
  ...{ time: '2026-01-01T00:00', interval: 900, temperature: 3, windspeed: 1, winddirection: 2 },
  ...{ weathercode: 1, is_day: 1 },
}
const PLAN = { perMinute: 1_000, perMonth: 100_000, inFlight: 500, resultMegabytes: 10 }

describe('a key with limits of its own', () => {
  let stage: Stage
  let hold: Promise<unknown> | undefined
  let cell = 0

  before(async () => {
    stage = await startStage({
      caps: { 'random-facts': 'concurrency=256,1000000/1', weather: 'concurrency=256,1000000/1' },
      webNodes: 2,
      isInProcess: true,
      environment: { PLAN_LIMITS: JSON.stringify({ Free: PLAN, Pro: PLAN, Elite: PLAN }) },
    })
    stage.upstream.play('random-facts', (_arrival, response) => void response.writeHead(500).end())
    stage.upstream.play('weather', async () => {
      await hold
      return { ...place, current_weather: sky }
    })
  })
  after(() => stage.stop())

  const makeKey = async (account: Account, body: object) =>
    (await send(stage.gateway, '/v1/keys', { token: account.token, body })).body as { id: string; key: string }
  const patch = (account: Account, id: string, body: object) =>
    send(stage.gateway, `/v1/keys/${id}`, { method: 'PATCH', token: account.token, body })
  /** No call has named it yet, so no answer is stored and no call shares its request. */
  const newPlace = () => {
    cell += 1
    return { latitude: (cell % 800) / 10, longitude: Math.floor(cell / 800) }
  }
  const weather = () => {
    const { latitude, longitude } = newPlace()
    return `/v1/call/weather/current?latitude=${latitude}&longitude=${longitude}`
  }
  const call = (key: string, node = 0, path = weather()) =>
    sendPatiently(stage.gateway, path, { key, url: stage.gateway.urls[node] ?? '' })
  const codeOf = ({ status: answered, body }: Answer) => (answered === 200 ? 'ok' : body.error.code)
  const byMcp = async (key: string, node: number): Promise<string> => {
    const { body } = await sendPatiently(stage.gateway, '/mcp', {
      key,
      url: stage.gateway.urls[node] ?? '',
      body: {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'call_api', arguments: { api: 'weather', endpoint: '/current', parameters: newPlace() } },
      },
    })
    return body.result.isError ? 'refused' : 'ok'
  }
  const byBatch = async (key: string, node: number, count: number): Promise<string[]> => {
    const calls = Array.from({ length: count }, () => ({
      api: 'weather',
      endpoint: '/current',
      parameters: newPlace(),
    }))
    const response = await fetch(`${stage.gateway.urls[node]}/v1/batch`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ calls, take: 'fit' }),
    })
    if (response.status !== 200) return calls.map(() => 'refused')
    const lines = (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    return lines.filter(({ index }) => index !== undefined).map((line) => (line.status === 200 ? 'ok' : 'refused'))
  }

  it('of any number of calls at once over two nodes, by call, batch and MCP, exactly as many as its limit are admitted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.constantFrom('perMinute', 'perMonth'),
        fc.array(fc.constantFrom('call', 'batch', 'mcp'), { minLength: 14, maxLength: 24 }),
        async (max, name, ways) => {
          const account = await signUp(stage.gateway)
          const { key } = await makeKey(account, { limits: { [name]: max } })
          const outcomes = await Promise.all(
            ways.map(async (way, index): Promise<string[]> => {
              const node = index % 2
              if (way === 'batch') return await byBatch(key, node, 2)
              return [way === 'mcp' ? await byMcp(key, node) : codeOf(await call(key, node))]
            }),
          )
          assert.equal(outcomes.flat().filter((outcome) => outcome === 'ok').length, max)
          // The other keys of the account have the rest of the plan.
          assert.equal((await call(account.live)).status, 200)
          const code = name === 'perMinute' ? 'RATE_LIMIT_EXCEEDED' : 'MONTHLY_QUOTA_EXCEEDED'
          const refused = await call(key, 1)
          assert.equal(codeOf(refused), code)
          assert.match(refused.body.error.message, new RegExp(`This key allows ${max} calls? a m`))
          assert.match(refused.body.error.hint, new RegExp(`limit=${max} limit_of=key retry_after=\\d+`))
          assert.doesNotMatch(refused.body.error.hint, /upgrade_to/)
        },
      ),
      propertyRuns(6),
    )
  })

  it('two keys of one account are counted apart, and each together with the account', async () => {
    const account = await signUp(stage.gateway)
    const [first, second] = [
      await makeKey(account, { limits: { perMinute: 3 } }),
      await makeKey(account, { limits: { perMinute: 5 } }),
    ]
    const codes = await Promise.all(
      [first, second].flatMap(({ key }) => Array.from({ length: 8 }, (_, nth) => call(key, nth % 2))),
    )
    const admitted = codes.map(codeOf).map((code) => code === 'ok')
    assert.deepEqual(
      [admitted.slice(0, 8), admitted.slice(8)].map((own) => own.filter(Boolean).length),
      [3, 5],
    )
    const { headers } = await call(account.live)
    assert.match(headers.get('ratelimit') ?? '', /^"minute";r=991;/)
    assert.doesNotMatch(headers.get('ratelimit') ?? '', /credential/)
    const own = await call(second.key)
    assert.match(own.headers.get('ratelimit') ?? '', /"credential-minute";r=0;t=\d+/)
    assert.deepEqual([own.headers.get('x-ratelimit-limit'), own.headers.get('x-ratelimit-remaining')], ['5', '0'])
  })

  it('calls in flight are bounded by the key over two nodes, and a call that ends makes room', async () => {
    const account = await signUp(stage.gateway)
    const { key } = await makeKey(account, { limits: { inFlight: 2 } })
    const gate = Promise.withResolvers<void>()
    hold = gate.promise
    const arrived = stage.upstream.arrivalsOf('weather').length
    const held = [call(key, 0), call(key, 1)]
    await until(() => stage.upstream.arrivalsOf('weather').length === arrived + 2)
    for (const node of [0, 1]) {
      const refused = await call(key, node)
      assert.deepEqual(
        [codeOf(refused), /This key allows 2 calls/.test(refused.body.error.message)],
        ['CONCURRENCY_LIMIT_EXCEEDED', true],
      )
    }
    gate.resolve()
    hold = undefined
    assert.deepEqual((await Promise.all(held)).map(codeOf), ['ok', 'ok'])
    assert.deepEqual(await Promise.all([0, 1].map(async (node) => codeOf(await call(key, node)))), ['ok', 'ok'])
  })

  it('a call that fails gives the month of the key back, an asynchronous call too', async () => {
    const account = await signUp(stage.gateway)
    const { key } = await makeKey(account, { limits: { perMonth: 2 } })
    const later = await send(stage.gateway, FACT, { key, headers: { prefer: 'respond-async' } })
    assert.equal(later.status, 202)
    const location = later.headers.get('location') ?? ''
    await until(async () => (await send(stage.gateway, location, { key })).status === 502)
    for (const node of [0, 1]) assert.equal((await call(key, node, FACT)).status, 502)
    const month = await stage.redis.keys(`agw:{a:${account.id}}:connection:*`)
    await until(async () => (await stage.redis.get(month[0] ?? '')) === '0')
    assert.deepEqual(
      [codeOf(await call(key)), codeOf(await call(key)), codeOf(await call(key))],
      ['ok', 'ok', 'MONTHLY_QUOTA_EXCEEDED'],
    )
  })

  it('both keys of a rotation share one limit, and a change of one is a change of both', async () => {
    const account = await signUp(stage.gateway)
    const old = await makeKey(account, { limits: { perMinute: 4 }, apis: ['weather'] })
    const { body: made } = await send(stage.gateway, `/v1/keys/${old.id}/rotate`, { token: account.token, body: {} })
    assert.deepEqual([codeOf(await call(old.key)), codeOf(await call(made.key, 1))], ['ok', 'ok'])
    assert.deepEqual([codeOf(await call(old.key, 1)), codeOf(await call(made.key))], ['ok', 'ok'])
    for (const key of [old.key, made.key]) assert.equal(codeOf(await call(key)), 'RATE_LIMIT_EXCEEDED')
    await patch(account, made.id, { limits: { perMinute: 6 } })
    assert.deepEqual([codeOf(await call(old.key, 1)), codeOf(await call(made.key, 1))], ['ok', 'ok'])
    assert.equal(codeOf(await call(old.key)), 'RATE_LIMIT_EXCEEDED')
    const { body } = await send(stage.gateway, '/v1/keys', { token: account.token })
    const limits = body.keys.flatMap((key: { id: string; limits: { perMinute: number } }) =>
      [old.id, made.id].includes(key.id) ? [key.limits.perMinute] : [],
    )
    assert.deepEqual(limits, [6, 6])
  })

  it('a month that is set, lifted and set again counts what was called meanwhile, and comes back when Redis lost it', async () => {
    const account = await signUp(stage.gateway)
    const { id, key } = await makeKey(account, {})
    const ofLedger = async () =>
      Number(
        (
          await sql<{ calls: string }>(
            stage.gateway,
            'select coalesce(sum(calls), 0) as calls from usage_daily where key = $1',
            [id],
          )
        )[0]?.calls,
      )
    const left = async () => {
      const { headers } = await call(key, 1)
      return /"credential-month";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
    }
    for (let times = 0; times < 3; times += 1) await call(key)
    await until(async () => (await ofLedger()) === 3)
    assert.deepEqual((await patch(account, id, { limits: { perMonth: 10 } })).body.limits.perMonth, 10)
    assert.equal(await left(), '6', 'the three calls before count')
    await patch(account, id, { limits: null })
    assert.equal(await left(), undefined)
    await until(async () => (await ofLedger()) === 5)
    await patch(account, id, { limits: { perMonth: 10 } })
    assert.equal(await left(), '4')
    await until(async () => (await ofLedger()) === 6)
    await stage.redis.del(...(await stage.redis.keys(`agw:{a:${account.id}}:*`)))
    assert.equal(await left(), '3')
    // The new limit is below the use so far, so every node refuses the rest of the month at once.
    await patch(account, id, { limits: { perMonth: 2 } })
    assert.deepEqual(
      await Promise.all([0, 1].map(async (node) => codeOf(await call(key, node)))),
      Array(2).fill('MONTHLY_QUOTA_EXCEEDED'),
    )
  })

  it('a limit of a key above the plan is accepted but the plan decides, also when the plan is lowered below the limit of the key', async () => {
    const lower = JSON.stringify({ Free: { ...PLAN, perMinute: 2 }, Pro: PLAN, Elite: PLAN })
    const url = await stage.gateway.startWeb({ PLAN_LIMITS: lower })
    const account = await signUp(stage.gateway)
    const { id, key } = await makeKey(account, { limits: { perMinute: 5_000, perMonth: 1_000_000_000, inFlight: 700 } })
    assert.equal((await call(key)).status, 200)
    const answers = []
    for (let times = 0; times < 3; times += 1) answers.push(await send(stage.gateway, weather(), { key, url }))
    assert.deepEqual(answers.map(codeOf), ['ok', 'RATE_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED'])
    assert.match(answers[2]?.body.error.hint, /upgrade_to=pro/)
    for (const wrong of [{ perMinute: 0 }, { perMonth: -1 }, { inFlight: 1.5 }, { perMinute: 1e10 }, { perHour: 3 }, 7])
      assert.equal((await patch(account, id, { limits: wrong })).status, 400, JSON.stringify(wrong))
  })

  it('a key may call only the APIs that its owner allows, sees only these in catalog and search, and finds only its own asynchronous calls', async () => {
    const account = await signUp(stage.gateway)
    const { id, key } = await makeKey(account, { apis: ['weather', 'weather', 'countries'] })
    const forbidden = await call(key, 1, '/v1/call/geocoding/search?q=x')
    assert.deepEqual([forbidden.status, codeOf(forbidden)], [403, 'KEY_API_FORBIDDEN'])
    assert.match(forbidden.body.error.hint, /allowed=countries,weather/)
    const names = (body: { data: { api_name: string }[] }) => body.data.map(({ api_name }) => api_name).sort()
    const listed = await send(stage.gateway, '/v1/catalog', { key })
    assert.deepEqual([names(listed.body as never), listed.body.total], [['countries', 'weather'], 2])
    const recipes = await send(stage.gateway, '/v1/catalog?q=recipes', { key })
    assert.ok(!names(recipes.body as never).includes('meal-recipes'))
    for (const other of [
      {},
      { key: account.live },
      { token: account.token },
      { key: 'agw_live_wrong' },
      { token: 'a.b.c' },
    ])
      assert.ok((await send(stage.gateway, '/v1/catalog', other)).body.total > 20)
    const search = await send(stage.gateway, '/mcp', {
      key,
      body: {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'search_apis', arguments: { limit: 50 } },
      },
    })
    const found = search.body.result.structuredContent.apis.map(({ api }: { api: string }) => api).sort()
    assert.deepEqual(found, ['countries', 'weather'])
    const later = await send(stage.gateway, weather(), { key: account.live, headers: { prefer: 'respond-async' } })
    const location = later.headers.get('location') ?? ''
    // A test key of the account has no limits of its own, and reaches nothing live all the same.
    for (const other of [key, account.test])
      assert.equal((await send(stage.gateway, location, { key: other })).body.code, 'CALL_NOT_FOUND')
    assert.ok((await send(stage.gateway, location, { key: account.live })).status < 300)
    // If one node makes a change, the other node applies it from the next request on.
    assert.deepEqual((await patch(account, id, { apis: ['geocoding'] })).body.apis, ['geocoding'])
    assert.equal((await call(key, 1, '/v1/call/geocoding/search')).status, 400)
    assert.equal(codeOf(await call(key)), 'KEY_API_FORBIDDEN')
    assert.equal((await patch(account, id, { apis: null })).body.apis, null)
    assert.equal((await call(key, 1)).status, 200)
    for (const apis of [['none'], [], 'weather', [7]])
      assert.equal((await patch(account, id, { apis })).status, 400, JSON.stringify(apis))
  })

  it('a test key has the minute and the calls at once of its limits, and no month', async () => {
    const account = await signUp(stage.gateway)
    const { key } = await makeKey(account, { environment: 'test', limits: { perMinute: 3, perMonth: 1 } })
    const codes = []
    for (let times = 0; times < 4; times += 1) codes.push(codeOf(await call(key, times % 2)))
    assert.deepEqual(codes, ['ok', 'ok', 'ok', 'RATE_LIMIT_EXCEEDED'])
  })
})

describe('a month that is nearly used', () => {
  let stage: Stage
  let mail: MailServer

  before(async () => {
    mail = await startMailServer()
    stage = await startStage({
      caps: { weather: 'concurrency=256,1000000/1' },
      webNodes: 2,
      isInProcess: true,
      environment: {
        PLAN_LIMITS: JSON.stringify({ Free: { ...PLAN, perMonth: 10 }, Pro: PLAN, Elite: PLAN }),
        SMTP_URL: mail.url,
      },
    })
    stage.upstream.play('weather', () => ({ ...place, current_weather: sky }))
  })
  after(async () => {
    await stage.stop()
    await mail.close()
  })

  it('a mail tells of it at 80 and at 100 %, once each, for a key too, and goes to nobody who wants none', async () => {
    const [account, quiet] = [await signUp(stage.gateway), await signUp(stage.gateway)]
    for (const { id } of [account, quiet])
      await sql(stage.gateway, 'update users set email_verified_at = now() where id = $1', [id])
    await send(stage.gateway, '/v1/me/notices', { method: 'PUT', token: quiet.token, body: { byMail: false } })
    const body = { label: 'of the robot', limits: { perMonth: 2 } }
    const { body: narrow } = await send(stage.gateway, '/v1/keys', { token: account.token, body })
    let cell = 0
    const call = (key: string) => {
      cell += 1
      const url = stage.gateway.urls[cell % 2] ?? ''
      return send(stage.gateway, `/v1/call/weather/current?latitude=${cell}&longitude=1`, { key, url })
    }
    const textsTo = ({ email }: Account) => mail.mails.filter(({ to }) => to === email).map(({ text }) => text)
    for (let times = 0; times < 2; times += 1) await call(narrow.key)
    await until(() => textsTo(account).length === 1)
    assert.match(textsTo(account)[0] ?? '', /2 of the 2 calls a month that you allow the key .*\(of the robot\)/s)
    await Promise.all(Array.from({ length: 12 }, () => call(account.live)))
    await until(() => textsTo(account).length === 3)
    assert.ok(textsTo(account).some((text) => /[89] of the 10 calls a month of your plan/.test(text)))
    assert.ok(textsTo(account).some((text) => /10 of the 10 calls a month of your plan/.test(text)))
    await Promise.all(Array.from({ length: 12 }, () => call(quiet.live)))
    // If a later notice has arrived, the earlier notices would have arrived too.
    const last = await signUp(stage.gateway)
    await sql(stage.gateway, 'update users set email_verified_at = now() where id = $1', [last.id])
    await Promise.all(Array.from({ length: 8 }, () => call(last.live)))
    await until(() => textsTo(last).length === 1)
    assert.deepEqual([textsTo(account).length, textsTo(quiet).length], [3, 0])
    // With a higher plan, 80 % is another number of calls.
    await sql(stage.gateway, "update users set tier = 'pro' where id = $1", [account.id])
    await stage.redis.del(accountKeys.version(account.id))
    await stage.redis.set(accountKeys.month(account.id, new Date().toISOString().slice(0, 7)), 80_000)
    await call(account.live)
    await until(() => textsTo(account).length === 4)
    assert.match(textsTo(account)[3] ?? '', /80001 of the 100000 calls a month of your plan/)
  })
})
