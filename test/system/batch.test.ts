import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Account, createKey, send, signUp, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { MODERN, withMcpClient } from '../support/mcp-client.ts'
import { readMinute } from '../support/minutes.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: lines of batches are what the tests check
type Line = any

interface BatchOptions {
  key: string
  take?: string
  prefer?: string
  url?: string
}

const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }
const fact = { id: 'a', text: 't', source: 's', source_url: 'u' }

/** A number in letters, because breeds have no digits. */
const letters = (number: number): string => String.fromCharCode(97 + Math.floor(number / 26), 97 + (number % 26))

describe('a batch', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      webNodes: 2,
      timeoutMs: 4_000,
      caps: {
        'dog-images': 'concurrency=50,1000/1',
        'random-facts': 'concurrency=20,10/60',
        trivia: 'concurrency=4,4/2',
      },
      environment: {
        PLAN_LIMITS: JSON.stringify({
          Free: { perMinute: 10, perMonth: 1000, inFlight: 5 },
          Pro: { perMinute: 1000, perMonth: 100_000, inFlight: 60 },
        }),
      },
    })
    ;({ gateway, upstream, account } = stage)
    upstream.play('dog-images', () => dog)
    upstream.play('random-facts', () => fact)
  })
  after(() => stage.stop())

  const breeds = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) => ({
      api: 'dog-images',
      endpoint: '/breed',
      parameters: { breed: `hound${letters(from + index)}` },
    }))
  const open = (calls: object[], { key, take, prefer, url = gateway.url, ...init }: RequestInit & BatchOptions) =>
    fetch(`${url}/v1/batch`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...(prefer ? { prefer } : {}) },
      body: JSON.stringify({ calls, ...(take ? { take } : {}) }),
      ...init,
    })
  /** The lines of a batch by index, and the last one. */
  const batch = async (calls: object[], options: BatchOptions) => {
    const response = await open(calls, options)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    assert.match(response.headers.get('content-type') ?? '', /^application\/x-ndjson/)
    const all: Line[] = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const total = all.pop()
    assert.equal(all.length, calls.length)
    const lines = all.toSorted((a, b) => a.index - b.index)
    return { lines, total, order: all.map(({ index }) => index), headers: response.headers }
  }
  const used = async (of: Account): Promise<number> =>
    1000 -
    Number(
      /"month";r=(\d+)/.exec(
        (await send(gateway, '/v1/call/none/x', { key: of.live })).headers.get('ratelimit') ?? '',
      )?.[1],
    )
  const inFlight = (of: Account) => stage.redis.zcard(`agw:{a:${of.id}}:live:inflight`)

  it('a batch answers each call on its own line with its data or its own refusal, and says what it cost', async () => {
    const calls = [
      { ref: 'first', ...breeds(1)[0] },
      { api: 'none', endpoint: '/x' },
      { api: 'weather', endpoint: 'nothing' },
      { ref: 'bad', api: 'weather', endpoint: '/current', parameters: { latitude: 1000, longitude: 1 } },
      { api: 'news', endpoint: '/top' },
      breeds(1)[0] ?? {},
    ]
    const before = upstream.arrivalsOf('dog-images').length
    const { lines, total, headers } = await batch(calls, { key: account.live })
    const single = await send(gateway, '/v1/call/dog-images/breed?breed=hound', { key: account.test })
    // Test calls are free.
    assert.equal((await batch(calls, { key: account.test })).total.charged, 0)
    assert.deepEqual(Object.keys(single.body.data), Object.keys(lines[0].data))
    assert.equal(lines[0].ref, 'first')
    assert.match(lines[0].id, /^call_[0-9a-f]{32}$/)
    assert.deepEqual(
      lines.map(({ status }: Line) => status),
      [200, 404, 404, 400, 402, 200],
    )
    assert.deepEqual(lines.slice(1, 5).map(({ error }: Line) => error.code), [
      'API_NOT_FOUND', 'ENDPOINT_NOT_FOUND', 'INVALID_PARAMETER', 'PLAN_UPGRADE_REQUIRED',
    ]) // biome-ignore format: a list
    assert.match(lines[3].error.hint, /param=latitude/)
    assert.deepEqual(lines[5].data, lines[0].data)
    assert.deepEqual(total, { done: true, ok: 2, failed: 4, charged: 1, deduplicated: 1, mode: 'live' })
    assert.equal(upstream.arrivalsOf('dog-images').length - before, 1)
    assert.match(headers.get('ratelimit') ?? '', /"minute";r=9;/)
    assert.equal(await used(account), 1)
    await until(async () => (await inFlight(account)) === 0)
    const inOrder = await fetch(`${gateway.url}/v1/batch`, {
      method: 'POST',
      headers: { 'x-api-key': account.live, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ calls }),
    })
    const { results, ...rest }: Line = await inOrder.json()
    assert.deepEqual(
      results.map(({ index }: Line) => index),
      [0, 1, 2, 3, 4, 5],
    )
    assert.equal(rest.deduplicated, 1)
  })

  it('a batch starts no further call after its key was revoked, and answers the calls that had begun', async () => {
    const caller = await signUp(gateway)
    const { key, id } = await createKey(gateway, caller.token)
    const answers: (() => void)[] = []
    upstream.play('dog-images', () => new Promise((resolve) => answers.push(() => resolve(dog))))
    const before = upstream.arrivalsOf('dog-images').length
    const begun = () => upstream.arrivalsOf('dog-images').length - before
    const running = batch(breeds(8, 300), { key })
    await until(() => begun() === 5)
    const revoked = await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: caller.token })
    assert.equal(revoked.status, 204)
    upstream.play('dog-images', () => dog)
    for (const answer of answers) answer()
    const { lines, total } = await running
    assert.equal(begun(), 5)
    assert.deepEqual(
      lines.map(({ status, error }: Line) => error?.code ?? status),
      [200, 200, 200, 200, 200, ...Array(3).fill('INVALID_API_KEY')],
    )
    assert.equal(total.charged, 5)
    await until(async () => (await inFlight(caller)) === 0)
  })

  it('a batch continues with the current rights of its caller, and other changes of the account do not end it', async () => {
    const caller = await signUp(gateway)
    const { id } = await createKey(gateway, caller.token)
    const answers: (() => void)[] = []
    upstream.play('dog-images', () => new Promise((resolve) => answers.push(() => resolve(dog))))
    const running = batch(breeds(7, 320), { key: caller.live })
    await until(() => answers.length === 5)
    await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: caller.token })
    upstream.play('dog-images', () => dog)
    for (const answer of answers) answer()
    const { lines, total } = await running
    assert.ok(lines.every(({ status }: Line) => status === 200))
    assert.equal(total.charged, 7)
  })

  it('a batch takes null for what is left out, as single calls and MCP do, and says that its calls are test calls', async () => {
    const items = [{ ref: null, api: 'random-facts', endpoint: '/random', parameters: null }]
    const first = await batch(items, { key: account.test })
    assert.deepEqual([first.lines[0].status, first.lines[0].ref, first.total.mode], [200, undefined, 'test'])
    const body = JSON.stringify({ calls: items, take: null })
    const second = await open([], { key: account.test, body })
    assert.equal(second.status, 200, await second.text())
    const refused = await open([], { key: account.test, body: JSON.stringify({ calls: null }) })
    assert.equal(refused.status, 400)
    await refused.body?.cancel()
  })

  it('a batch makes equal calls once', async () => {
    const caller = await signUp(gateway)
    const before = upstream.arrivalsOf('dog-images').length
    const equal = { api: 'dog-images', endpoint: '/random', parameters: {} }
    const { lines, total } = await batch(
      Array.from({ length: 20 }, () => equal),
      { key: caller.live },
    )
    assert.ok(lines.every(({ status, data }: Line) => status === 200 && data.image_url === dog.message))
    assert.deepEqual(total, { done: true, ok: 20, failed: 0, charged: 1, deduplicated: 19, mode: 'live' })
    assert.equal(upstream.arrivalsOf('dog-images').length - before, 1)
    assert.equal(await used(caller), 1)
  })

  it('a batch counts equal calls as made once when they fail, too', async (t) => {
    const caller = await signUp(gateway)
    upstream.play('dog-images', (_arrival, response) => void response.writeHead(404).end('{}'))
    t.after(() => upstream.play('dog-images', () => dog))
    const equal = { api: 'dog-images', endpoint: '/breed', parameters: { breed: 'nosuch' } }
    const { lines, total } = await batch([equal, equal, equal], { key: caller.live })
    assert.equal(new Set(lines.map(({ id }: Line) => id)).size, 1)
    assert.deepEqual([total.failed, total.deduplicated], [3, 2])
  })

  it('a batch is refused as a whole if the limits do not allow all calls, with the time at which they do, or makes the calls that the limits allow', async () => {
    const caller = await signUp(gateway)
    await batch(breeds(3), { key: caller.live })
    const all = await open(breeds(8, 3), { key: caller.live })
    const refusal: Line = await all.json()
    assert.deepEqual([all.status, refusal.code], [429, 'RATE_LIMIT_EXCEEDED'])
    assert.equal(await used(caller), 3)
    // Seven are left. The eighth fits only if the first of the three is a minute old.
    const [oldest = ''] = (await stage.redis.zrange(`agw:{a:${caller.id}}:live:minute`, '0', '0', 'WITHSCORES')).slice(
      1,
    )
    const fitsInMs = Number(oldest) / 1_000 + 60_000 - Date.now()
    assert.ok(Math.abs(Number(all.headers.get('retry-after')) * 1_000 - fitsInMs) < 3_000, `${fitsInMs}`)
    const { lines, total } = await batch(breeds(8, 3), { key: caller.live, take: 'fit' })
    assert.deepEqual(
      lines.map(({ status }: Line) => status),
      [200, 200, 200, 200, 200, 200, 200, 429],
    )
    assert.equal(lines[7].error.code, 'RATE_LIMIT_EXCEEDED')
    assert.ok(lines[7].retryAfter > 0)
    assert.deepEqual(total, { done: true, ok: 7, failed: 1, charged: 7, deduplicated: 0, mode: 'live' })
    assert.equal(await used(caller), 10)
    const tooMany = await open(breeds(11, 20), { key: caller.live })
    assert.deepEqual([tooMany.status, ((await tooMany.json()) as Line).code], [400, 'VALIDATION_ERROR'])
    const newcomer = await signUp(gateway)
    const own = { token: newcomer.token, body: { limits: { perMonth: 3 } } }
    const { key } = (await send(gateway, '/v1/keys', own)).body
    const aboveMonth = await open(breeds(4, 20), { key })
    const { code, message }: Line = await aboveMonth.json()
    assert.deepEqual(
      [aboveMonth.status, code, message],
      [400, 'VALIDATION_ERROR', 'The key allows 3 calls a month; the batch has 4.'],
    )
    const last = breeds(1, 30)
    const { total: cut } = await batch([...breeds(10, 20), ...last, ...last], { key: newcomer.live, take: 'fit' })
    assert.deepEqual(cut, { done: true, ok: 10, failed: 2, charged: 10, deduplicated: 0, mode: 'live' })
  })

  it('a batch shows operators each call of it that was refused, alone or with all others, as a call that comes alone', async () => {
    const caller = await signUp(gateway)
    const none = { api: 'none', endpoint: '/x' }
    await batch([...breeds(8), none], { key: caller.live })
    const all = await open(breeds(4, 30), { key: caller.live })
    assert.equal(all.status, 429)
    assert.equal((await batch([...breeds(4, 30), none], { key: caller.live, take: 'fit' })).lines[2].status, 429)
    const answered = async () => {
      const now = Date.now()
      const minutes = await Promise.all([now, now - 60_000].map((at) => readMinute(stage.redis, at)))
      const counts: Record<number, number> = {}
      for (const { id, status, count } of minutes.flatMap(({ accounts }) => accounts))
        if (id === caller.id) counts[status] = (counts[status] ?? 0) + count
      return counts
    }
    await until(async () => (await answered())[200] === 10, 20_000)
    assert.deepEqual(await answered(), { 200: 10, 404: 2, 429: 4 + 2 })
  })

  it('a batch never has more calls in flight than the plan allows, over all nodes', async () => {
    const caller = await signUp(gateway)
    let flying = 0
    let most = 0
    upstream.play('dog-images', async () => {
      flying += 1
      most = Math.max(most, flying)
      await new Promise((resolve) => setTimeout(resolve, 60))
      flying -= 1
      return dog
    })
    const answers = await Promise.all([
      open(breeds(5, 40), { key: caller.live }),
      open(breeds(5, 50), { key: caller.live, url: gateway.urls[1] ?? '' }),
    ])
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    // If a single batch came first, it has all five leases. The other batch is then refused at
    // once, or it had the leases before.
    const statuses = answers.map(({ status }) => status).sort()
    assert.ok(statuses[0] === 200 && (statuses[1] === 200 || statuses[1] === 429), `${statuses}`)
    const served = texts[answers.findIndex(({ status }) => status === 200)] ?? assert.fail()
    const last: Line = JSON.parse(served.trimEnd().split('\n').at(-1) ?? '')
    const { total } = await batch(breeds(3, 60), { key: caller.live, take: 'fit' }).catch(() => ({ total: undefined }))
    assert.ok(last.ok === 5 && most <= 5, `${served} ${most}`)
    if (total) assert.ok(total.charged <= 3)
    await until(async () => (await inFlight(caller)) === 0)
    const pro = await signUp(gateway, 'pro')
    most = 0
    const big = await batch(breeds(50, 100), { key: pro.live })
    assert.equal(big.total.charged, 50)
    upstream.play('dog-images', () => dog)
  })

  it('a batch says at once which calls come too late, when they may be tried, and does not charge them', async () => {
    const pro = await signUp(gateway, 'pro')
    const before = upstream.arrivalsOf('random-facts').length
    const startedAt = performance.now()
    // Undeclared parameters make these calls different. The cap lets ten through in a minute.
    const calls = Array.from({ length: 20 }, (_, index) => ({
      api: 'random-facts',
      endpoint: '/random',
      parameters: { mine: String(index) },
    }))
    const { lines, total } = await batch(calls, { key: pro.live })
    // Before the window of a minute was over.
    assert.ok(performance.now() - startedAt < 30_000)
    const [made, late] = [
      lines.filter(({ status }: Line) => status === 200),
      lines.filter(({ status }: Line) => status !== 200),
    ]
    assert.equal(upstream.arrivalsOf('random-facts').length - before, made.length)
    assert.ok(made.length > 0 && made.length <= 10 && made.length + late.length === 20, `${made.length}`)
    for (const { status, error, retryAfter } of late) {
      assert.deepEqual([status, error.code], [503, 'UPSTREAM_CAP_EXHAUSTED'])
      assert.ok(retryAfter > 30 && retryAfter <= 61, `${retryAfter}`)
    }
    assert.equal(total.charged, made.length)
    const rows = () =>
      sql<{ calls: string }>(gateway, 'select sum(calls) calls from usage_daily where user_id = $1', [pro.id])
    await until(async () => Number((await rows())[0]?.calls) === made.length)
  })

  it('a batch takes as long as its caller wants to wait, and cannot be fetched later', async () => {
    const caller = await signUp(gateway)
    upstream.play('dog-images', ({ url }) => (url.includes('slow') ? undefined : dog))
    const calls = [...breeds(1, 60), { api: 'dog-images', endpoint: '/breed', parameters: { breed: 'slow' } }]
    const startedAt = performance.now()
    const { lines, total, headers } = await batch(calls, { key: caller.live, prefer: 'wait=1' })
    const tookMs = performance.now() - startedAt
    // Of the 30 s that a call may take.
    assert.ok(tookMs >= 500 && tookMs < 15_000, `${tookMs}`)
    assert.equal(headers.get('preference-applied'), 'wait=1')
    assert.deepEqual(
      lines.map(({ status, error }: Line) => error?.code ?? status),
      [200, 'UPSTREAM_TIMEOUT'],
    )
    assert.equal(total.charged, 1)
    for (const prefer of ['respond-async', 'wait=0']) {
      const ignored = await batch(breeds(1, 60), { key: caller.live, prefer })
      assert.equal(ignored.total.ok, 1)
      assert.equal(ignored.headers.get('preference-applied'), null)
    }
    upstream.play('dog-images', () => dog)
  })

  it('a batch does not delay others: single calls of other accounts wait no longer than their share requires', async () => {
    const [greedy, other] = [await signUp(gateway, 'pro'), await signUp(gateway, 'pro')]
    upstream.play('trivia', () => ({ response_code: 0, results: [] }))
    const questions = (mark: string, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        api: 'trivia',
        endpoint: '/questions',
        parameters: { mark: `${mark}${index}` },
      }))
    const many = batch(questions('a', 30), { key: greedy.live })
    await until(async () => (await inFlight(greedy)) > 0)
    const before = upstream.arrivalsOf('trivia').length
    const single = await send(gateway, '/v1/call/trivia/questions?mark=b', { key: other.live })
    assert.equal(single.status, 200, single.text)
    // Four requests pass in two seconds. The call is among the next four, and not behind the
    // thirty, however many calls of the batch wait.
    const sent = upstream.arrivalsOf('trivia').slice(before)
    const place = sent.findIndex(({ url }) => url.includes('mark=b'))
    assert.ok(place >= 0 && place < 16, `${place} of the batch were sent before it`)
    await many
  })

  it('a batch whose caller leaves sends nothing more and is charged for what was sent', async () => {
    const pro = await signUp(gateway, 'pro')
    const before = upstream.arrivalsOf('trivia').length
    const left = new AbortController()
    const questions = Array.from({ length: 30 }, (_, index) => ({
      api: 'trivia',
      endpoint: '/questions',
      parameters: { mark: `c${index}` },
    }))
    // If a request was sent as the caller left, it may arrive a moment later.
    const sent = () => upstream.arrivalsOf('trivia').length - before
    await open(questions, { key: pro.live, signal: left.signal })
    await until(() => sent() > 0)
    left.abort()
    await until(async () => (await inFlight(pro)) === 0)
    const month = `agw:{a:${pro.id}}:month:${new Date().toISOString().slice(0, 7)}`
    const charged = async () => Number(await stage.redis.get(month))
    await until(async () => (await charged()) === sent()).catch(async () =>
      assert.fail(`charged ${await charged()} for ${sent()} that were sent`),
    )
    assert.ok(sent() > 0 && sent() < 12, `${sent()}`)
  })

  it('a batch is a tool of the MCP server too', async () => {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
    const calls = [...breeds(2, 200), { api: 'none', endpoint: '/x' }]
    const answer = await send(gateway, '/mcp', {
      key: account.test,
      body: { ...call, params: { name: 'call_apis', arguments: { calls } } },
    })
    const { structuredContent, isError } = answer.body.result
    assert.equal(isError, undefined)
    assert.deepEqual(
      structuredContent.results.map(({ status }: Line) => status),
      [200, 200, 404],
    )
    assert.deepEqual([structuredContent.ok, structuredContent.failed], [2, 1])
    const tooMany = await send(gateway, '/mcp', {
      key: account.test,
      body: { ...call, params: { name: 'call_apis', arguments: { calls: breeds(21) } } },
    })
    assert.equal(tooMany.body.result.isError, true, tooMany.text)
    assert.match(tooMany.text, /calls must have at most 20 members/)
    const inVain = await send(gateway, '/mcp', {
      key: account.test,
      body: { ...call, params: { name: 'call_apis', arguments: { calls: [{ api: 'none', endpoint: '/x' }] } } },
    })
    // The log recorded none of it.
    assert.equal(inVain.body.result.content.length, 1, inVain.text)
  })

  it('a batch of an MCP client that wants its progress tells how many calls have ended, in either generation', async (t) => {
    t.after(() => upstream.play('dog-images', () => dog))
    for (const [index, options] of [{ versionNegotiation: { mode: { pin: MODERN } } }, {}].entries()) {
      const held = Promise.withResolvers<void>()
      upstream.play('dog-images', async ({ url }) => {
        if (url.includes(`hound${letters(301 + 2 * index)}`)) await held.promise
        return dog
      })
      const key = { 'x-api-key': (await signUp(gateway)).live }
      await withMcpClient(`${gateway.url}/mcp`, key, options, async ({ client }) => {
        const heard: string[] = []
        const calls = [...breeds(2, 300 + 2 * index), { api: 'none', endpoint: '/x' }]
        const result = await client.callTool(
          { name: 'call_apis', arguments: { calls } },
          {
            onprogress: ({ progress, total, message }) => {
              heard.push(`${progress}/${total} ${message}`)
              if (progress >= 2) held.resolve()
            },
          },
        )
        assert.equal(Object(result.structuredContent).ok, 2)
        assert.ok(heard.includes('2/3 2 of 3 calls have ended.'), heard.join())
        assert.equal(heard.at(-1), '3/3 3 of 3 calls have ended.')
      })
    }
  })

  it('a batch without a valid body, or without a credential, is refused', async () => {
    for (const body of [
      {},
      { calls: [] },
      { calls: [{ api: 'weather' }] },
      { calls: breeds(51) },
      { calls: breeds(1), take: 'some' },
      { calls: [{ api: 'dog-images', endpoint: '/random', params: {} }] },
      { calls: breeds(1), taken: 'fit' },
    ]) {
      assert.equal((await send(gateway, '/v1/batch', { key: account.live, body })).status, 400)
    }
    assert.equal((await send(gateway, '/v1/batch', { body: { calls: breeds(1) } })).status, 401)
    const beside = [{ api: 'weather', endpoint: '/current', latitude: 1, longitude: 2 }]
    const { body } = await send(gateway, '/v1/batch', { key: account.live, body: { calls: beside } })
    assert.match(body.message, /^Member calls\.0\.latitude is not known; .* belong in the member parameters\.$/)
  })
})
