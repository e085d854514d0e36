import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { readResult, storeForEarlierNode, storeResult } from '../../src/queue/results.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { accountKeys, capKeys, earlierCallKeys } from '../../src/redis/keys.ts'
import { type Account, type Answer, createKey, send, signUp } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { MODERN, modernMessage, withMcpClient } from '../support/mcp-client.ts'
import { readMinute } from '../support/minutes.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'
// The answer is complete, because an answer that lacks members leads to a probe, which is a request
// too.
const fact = { id: 'a', text: 't', source: 's', source_url: 'u', language: 'en', permalink: 'p' }

describe('an asynchronous call', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: Redis

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      webNodes: 2,
      caps: {
        'random-facts': 'concurrency=4,2/4',
        'dog-images': 'concurrency=4,1000/1',
        'tech-forum': undefined,
        'mock-data': undefined,
        currency: undefined,
      },
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":20,"resultMegabytes":1}}' },
    })
    ;({ gateway, upstream, account, redis } = stage)
  })
  after(() => stage.stop())

  const start = (path: string, prefer: string, options: { key?: string; url?: string } = {}): Promise<Answer> =>
    send(gateway, path, { key: account.live, headers: { prefer }, ...options })
  const look = (id: string, options: { key?: string; url?: string } = {}): Promise<Answer> =>
    send(gateway, `/v1/calls/${id}`, { key: account.live, ...options })
  const finished = async (id: string, options: { key?: string } = {}): Promise<Answer> => {
    await until(async () => (await look(id, options)).status !== 202)
    return await look(id, options)
  }
  const inFlight = (): Promise<number> => redis.zcard(accountKeys.inFlight(account.id, 'live'))

  it('an asynchronous call is accepted at once, reports its position and expected time, and then returns the answer of a normal call', async () => {
    upstream.play('random-facts', () => fact)
    const ids: string[] = []
    for (let index = 0; index < 4; index += 1) {
      const taken = await start(FACT, 'respond-async')
      assert.equal(taken.status, 202, taken.text)
      assert.equal(taken.headers.get('preference-applied'), 'respond-async')
      assert.equal(taken.headers.get('location'), `/v1/calls/${taken.headers.get('x-call-id')}`)
      assert.equal(taken.headers.get('retry-after'), '1')
      assert.ok(taken.headers.get('ratelimit'))
      ids.push(String(taken.headers.get('x-call-id')))
    }
    // The cap lets two requests through. The last call has the third call before it.
    await until(() => upstream.arrivalsOf('random-facts').length === 2)
    await until(async () => (await look(ids[3] ?? '')).body.position === 1)
    const { status, body, headers } = await look(ids[3] ?? '')
    assert.equal(status, 202)
    assert.equal(headers.get('retry-after'), '1')
    assert.ok(body.etaMs > 0 && body.etaMs <= 4_500, `${body.etaMs}`)
    assert.deepEqual(Object.keys(body).sort(), ['etaMs', 'id', 'position', 'status'])
    // Two requests pass in four seconds. If a fifth call's caller has waited for one second, the
    // call is one second nearer to its slot.
    const waited = await start(FACT, 'wait=1')
    assert.equal(waited.status, 202)
    assert.ok(waited.body.etaMs <= 2 * 4_500 - 1_000, `${waited.body.etaMs}`)
    ids.push(String(waited.headers.get('x-call-id')))
    for (const id of ids) {
      const answer = await finished(id)
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.body, { status: 'success', data: fact })
      assert.equal(answer.headers.get('x-call-id'), id)
      // The 202 said how long admission took.
      assert.match(answer.headers.get('server-timing') ?? '', /^queue;dur=/)
    }
    assert.equal(upstream.arrivalsOf('random-facts').length, 5)
    await until(async () => (await inFlight()) === 0)
  })

  it('an asynchronous call keeps the outcome of the run that ended first, also a large outcome', async () => {
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
    for (const size of [10, 3_000_000]) {
      const id = `call_${randomUUID().replaceAll('-', '')}`
      const body = Buffer.from(JSON.stringify({ data: 'x'.repeat(size) }))
      const call = { id, accountId: account.id }
      assert.deepEqual(await storeResult(redis, call, { head: { id, times }, body }), {
        kind: 'kept',
        isStarted: false,
      })
      const failure = { head: { id, times, code: 'UPSTREAM_ERROR' as const }, body: Buffer.alloc(0) }
      assert.deepEqual(await storeResult(redis, call, failure), { kind: 'earlier' })
      const kept = await readResult(redis, call)
      assert.equal(kept?.head.code, undefined)
      assert.ok(kept?.body.equals(body))
      assert.ok((await redis.strlen(accountKeys.result(account.id, id))) < 20_000)
    }
  })

  it('an asynchronous call is found where the version before keeps it, and kept there for its nodes, while an upgrade runs', async () => {
    const id = `call_${randomUUID().replaceAll('-', '')}`
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
    const record = { id, accountId: account.id, slug: 'dog-images', mode: 'live', raw: false, deadline: Date.now() }
    await redis.set(earlierCallKeys.call(id), JSON.stringify(record), 'EX', 60)
    assert.equal((await look(id)).status, 202)
    await storeForEarlierNode(redis, { head: { id, times }, body: Buffer.from('{"status":"success","data":{}}') })
    assert.deepEqual((await look(id)).body, { status: 'success', data: {} })
    assert.equal((await look(id, { key: (await signUp(gateway)).live })).status, 404)
  })

  it('an asynchronous call that failed quotes the wait from when its result is read, not from when it ended', async () => {
    const id = `call_${randomUUID().replaceAll('-', '')}`
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
    const record = { id, accountId: account.id, slug: 'dog-images', mode: 'live', raw: false, deadline: Date.now() }
    await redis.set(accountKeys.call(account.id, id), JSON.stringify(record), 'EX', 60)
    const head = { id, times, code: 'UPSTREAM_RATE_LIMITED' as const, retryAfterMs: 40_000 }
    await storeResult(redis, record, { head, body: Buffer.alloc(0) })
    const wait = async () => Number((await look(id)).headers.get('retry-after'))
    assert.ok((await wait()) > 30)
    const key = accountKeys.result(account.id, id)
    await redis.pexpire(key, (await redis.pttl(key)) - 30_000)
    const later = await wait()
    assert.ok(later > 0 && later <= 10, `${later} s`)
    await redis.pexpire(key, (await redis.pttl(key)) - 30_000)
    assert.equal(await wait(), 1, 'it is over')
  })

  it('an asynchronous call is refused its result, and then refused itself, when the results of the account take all that its plan has', async () => {
    const caller = await signUp(gateway)
    const noise = randomBytes(200_000).toString('base64')
    upstream.play('mock-data', () => ({ id: 1, userId: 1, title: 't', body: 'b', noise }))
    const headers = { prefer: 'respond-async', 'x-gateway-response': 'raw' }
    const path = '/v1/call/mock-data/posts?id=1'
    const ended = async (): Promise<Answer> => {
      const taken = await send(gateway, path, { key: caller.live, headers })
      const id = String(taken.headers.get('x-call-id'))
      assert.equal(taken.status, 202, taken.text)
      await until(async () => (await look(id, { key: caller.live })).status !== 202)
      return await look(id, { key: caller.live })
    }
    const kept = [await ended(), await ended(), await ended(), await ended()]
    assert.deepEqual(
      kept.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    // A fifth result of the same length does not fit into the megabyte.
    const full = await ended()
    assert.deepEqual([full.status, full.body.error.code], [429, 'RESULT_STORAGE_FULL'])
    const retryAfter = Number(full.headers.get('retry-after'))
    assert.ok(retryAfter > 600 && retryAfter <= 900, `${retryAfter}`)
    assert.ok(Number(await redis.get(accountKeys.resultBytes(caller.id))) <= 1_000_000)
    await until(async () => (await redis.zcard(accountKeys.inFlight(caller.id, 'live'))) === 0)

    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
    for (let isFull = false; !isFull; ) {
      const id = `call_${randomUUID().replaceAll('-', '')}`
      // The limit falls within the last of them.
      const bytesMax = 1_000_000 + 20_000
      const reply = { head: { id, times }, body: randomBytes(12_000) }
      isFull = (await storeResult(redis, { id, accountId: caller.id, bytesMax }, reply)).kind === 'full'
    }
    const arrivals = upstream.arrivalsOf('mock-data').length
    const refused = await send(gateway, '/v1/call/mock-data/posts?id=2', { key: caller.live, headers })
    assert.deepEqual([refused.status, refused.body.error.code], [429, 'RESULT_STORAGE_FULL'], refused.text)
    assert.equal(upstream.arrivalsOf('mock-data').length, arrivals)
    // Five calls were made before. The refused call cost nothing.
    assert.match(String(refused.headers.get('ratelimit')), /"minute";r=995;/)
    const after = await send(gateway, path, { key: caller.live })
    assert.match(String(after.headers.get('ratelimit')), /"minute";r=994;/)
    assert.equal((await send(gateway, path, { key: account.live, headers })).status, 202)
  })

  it('an asynchronous call answers within the time its caller waits, or keeps its place', async () => {
    let isHeld = false
    const held: (() => void)[] = []
    upstream.play('dog-images', (_arrival, response) => {
      const end = () =>
        response.end(JSON.stringify({ status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }))
      if (isHeld) held.push(end)
      else end()
    })
    const quick = await start('/v1/call/dog-images/random', 'wait=5')
    assert.equal(quick.status, 200, quick.text)
    isHeld = true
    const slow = await start('/v1/call/dog-images/random', 'wait=1')
    assert.equal(slow.status, 202, slow.text)
    const id = String(slow.headers.get('x-call-id'))
    assert.equal((await look(id)).status, 202)
    for (const end of held) end()
    assert.equal((await finished(id)).status, 200)
    assert.equal(upstream.arrivalsOf('dog-images').length, 2)
  })

  it('an asynchronous call fails like a normal call, and its unit of the month is given back', async () => {
    upstream.play('dog-images', (_arrival, response) => void response.writeHead(501).end())
    const used = async (): Promise<string | undefined> =>
      /"month";r=(\d+)/.exec(
        (await send(gateway, '/v1/call/none/x', { key: account.live })).headers.get('ratelimit') ?? '',
      )?.[1]
    await until(async () => (await inFlight()) === 0)
    const before = await used()
    const taken = await start('/v1/call/dog-images/random', 'respond-async')
    const answer = await finished(String(taken.headers.get('x-call-id')))
    assert.equal(answer.status, 502)
    assert.equal(answer.body.status, 'error')
    assert.equal(answer.body.error.code, 'UPSTREAM_ERROR')
    await until(async () => (await inFlight()) === 0)
    assert.equal(await used(), before)
  })

  it('an asynchronous call is counted for operators as it ended, once, whoever had its answer', async () => {
    const ended = async (): Promise<Record<string, number>> => {
      const now = Date.now()
      const minutes = await Promise.all([now, now - 60_000, now - 120_000].map((at) => readMinute(redis, at)))
      const count = (code: string) => minutes.reduce((sum, { calls }) => sum + (calls.get(`currency|${code}`) ?? 0), 0)
      return { OK: count('OK'), UPSTREAM_ERROR: count('UPSTREAM_ERROR') }
    }
    const euroIn = (code: string) => `/v1/call/currency/pair?from=EUR&to=${code}`
    upstream.play('currency', ({ url }, response) =>
      url.includes('CHF')
        ? void response.writeHead(501).end()
        : { amount: 1, base: 'EUR', date: '2026-01-02', rates: { USD: 1.1, GBP: 0.9, JPY: 180 } },
    )
    const waited = await start(euroIn('USD'), 'wait=20')
    assert.equal(waited.status, 200, waited.text)
    for (const [code, status] of [
      ['GBP', 200],
      ['CHF', 502],
    ] as const) {
      const taken = await start(euroIn(code), 'respond-async')
      assert.equal((await finished(String(taken.headers.get('x-call-id')))).status, status)
    }
    // What the node counted before the call is written together with the call.
    assert.equal((await send(gateway, euroIn('JPY'), { key: account.live })).status, 200)
    const isThere = async () => Object.values(await ended()).reduce((sum, calls) => sum + calls) >= 4
    await until(isThere, 20_000)
    assert.deepEqual(await ended(), { OK: 3, UPSTREAM_ERROR: 1 })
  })

  it('an asynchronous call of another account, or an unknown id, is answered 404', async () => {
    const other = await signUp(gateway)
    const taken = await start(FACT, 'respond-async', { key: account.test })
    const id = String(taken.headers.get('x-call-id'))
    assert.equal((await finished(id)).headers.get('x-gateway-mode'), 'test')
    for (const [path, key] of [
      [id, other.live],
      [`call_${'0'.repeat(32)}`, account.live],
      ['x', account.live],
    ] as const) {
      const answer = await look(path, { key })
      assert.equal(answer.status, 404, answer.text)
      assert.ok(answer.text.includes('CALL_NOT_FOUND'))
    }
    assert.equal((await send(gateway, `/v1/calls/${id}`)).status, 401)
  })

  const cancel = (id: string, options: { key?: string; url?: string } = {}): Promise<Answer> =>
    send(gateway, `/v1/calls/${id}`, { method: 'DELETE', key: account.live, ...options })
  const startIds = async (path: string, count: number): Promise<string[]> => {
    const taken = await Promise.all(Array.from({ length: count }, () => start(path, 'respond-async')))
    return taken.map(({ headers, text }) => headers.get('x-call-id') ?? assert.fail(text))
  }
  /** Ended calls of an account by status. */
  const counted = async ({ token }: Account): Promise<Record<string, number>> => {
    const { body } = await send(gateway, '/v1/usage?groupBy=status', { token })
    return Object.fromEntries(body.usage.map((row: { status: number; calls: number }) => [row.status, row.calls]))
  }

  const used = async ({ token }: Account): Promise<number> =>
    Number((await send(gateway, '/v1/billing/status', { token })).body.usage.used)

  it('an asynchronous call that is cancelled while it waits never reaches the upstream, and its place goes to the next', async () => {
    upstream.play('random-facts', () => fact)
    const before = upstream.arrivalsOf('random-facts').length
    const usedBefore = await used(account)
    const ids = await startIds(FACT, 5)
    await until(async () => {
      const states = await Promise.all(ids.map(async (id) => (await look(id)).status))
      return states.filter((status) => status === 200).length === 2
    })
    const states = await Promise.all(ids.map(async (id) => ({ id, status: (await look(id)).status })))
    const waiting = states.filter(({ status }) => status === 202).map(({ id }) => id)
    // One call is cancelled at the node that accepted it, the other call at the other node.
    for (const [index, id] of waiting.slice(0, 2).entries()) {
      const answer = await cancel(id, { url: gateway.urls[index] ?? '' })
      assert.equal(answer.status, 204, answer.text)
      assert.equal(answer.text, '')
      const { status, body } = await look(id)
      assert.equal(status, 409)
      assert.equal(body.error.code, 'CALL_CANCELLED')
      assert.equal((await cancel(id)).status, 204, 'a second time does nothing more')
    }
    assert.equal((await finished(waiting[2] ?? '')).status, 200)
    await until(async () => (await inFlight()) === 0)
    assert.equal(upstream.arrivalsOf('random-facts').length - before, 3)
    assert.equal((await used(account)) - usedBefore, 3, 'what was never sent costs nothing')
  })

  it('an asynchronous call that is cancelled before a worker has it costs nothing, alone or in a job with others', async (t) => {
    const queue = new Queue(LANE.name, { connection: redis, prefix: LANE.prefix })
    await queue.pause()
    t.after(async () => {
      await queue.resume()
      await queue.close()
    })
    const [usedBefore, arrivals] = [await used(account), upstream.arrivalsOf('dog-images').length]
    const ids = await startIds('/v1/call/dog-images/random', 8)
    assert.equal((await used(account)) - usedBefore, 8)
    const cancelled = await Promise.all(ids.map((id) => cancel(id)))
    for (const { status, text } of cancelled) assert.equal(status, 204, text)
    // The answer has no limits if Redis takes long to read them. It is no error to cancel a call
    // again.
    await until(async () => {
      const { headers } = await cancel(ids[0] ?? '')
      return Number(/"month";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]) === 1_000 - usedBefore
    })
    // No worker runs. The node that cancelled the call gave everything back.
    assert.deepEqual([await inFlight(), await used(account)], [0, usedBefore])
    await queue.resume()
    await until(async () => Object.values(await queue.getJobCounts()).every((count) => count === 0))
    assert.deepEqual([upstream.arrivalsOf('dog-images').length, await used(account)], [arrivals, usedBefore])
  })

  it('an asynchronous call that is cancelled while it runs ends at the upstream, and whoever waits for it learns that', async () => {
    const closed = Promise.withResolvers<void>()
    upstream.play('dog-images', (_arrival, response) => void response.once('close', closed.resolve))
    const seen = new Set(await redis.keys('agw:{a:*}:call:*'))
    const arrivals = upstream.arrivalsOf('dog-images').length
    const waits = start('/v1/call/dog-images/random', 'wait=30')
    await until(() => upstream.arrivalsOf('dog-images').length > arrivals)
    const [key = ''] = (await redis.keys('agw:{a:*}:call:*')).filter((name) => !seen.has(name))
    const id = /call_[0-9a-f]{32}/.exec(key)?.[0] ?? assert.fail(key)
    assert.equal((await cancel(id)).status, 204)
    await closed.promise
    const answer = await waits
    assert.equal(answer.status, 409, answer.text)
    assert.equal(answer.body.error.code, 'CALL_CANCELLED')
    await until(async () => (await inFlight()) === 0)
  })

  it('an asynchronous call has one outcome however close its end and its cancelling come, and is counted once', async () => {
    upstream.play('dog-images', () => ({ status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }))
    const caller = await signUp(gateway)
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const taken = await start('/v1/call/dog-images/random', 'respond-async', { key: caller.live })
        const id = String(taken.headers.get('x-call-id'))
        await new Promise((resolve) => setTimeout(resolve, index * 2))
        const { status, text } = await cancel(id, { key: caller.live })
        const result = await look(id, { key: caller.live })
        if (status === 204) assert.equal(result.body.error?.code, 'CALL_CANCELLED', result.text)
        else {
          assert.ok(status === 409 && text.includes('CALL_ENDED'), text)
          assert.equal(result.status, 200)
        }
        return status
      }),
    )
    await until(async () => (await redis.zcard(`agw:{a:${caller.id}}:live:inflight`)) === 0)
    const cancelled = outcomes.filter((status) => status === 204).length
    await until(async () => Object.values(await counted(caller)).reduce((sum, calls) => sum + calls, 0) >= 20)
    const { 200: ok = 0, 499: left = 0, ...others } = await counted(caller)
    assert.deepEqual([ok, left, others], [20 - cancelled, cancelled, {}])
    const { body } = await send(gateway, '/v1/usage?groupBy=charged', { token: caller.token })
    const row = body.usage.find(({ charged }: { charged: boolean }) => charged)
    assert.equal(await used(caller), row?.calls ?? 0, 'a call that was cancelled before it was sent is not charged')
  })

  it('an asynchronous call of another account cannot be cancelled, nor one that has ended', async () => {
    const other = await signUp(gateway)
    const [id = ''] = await startIds('/v1/call/dog-images/random', 1)
    assert.equal((await cancel(id, { key: other.live })).status, 404)
    assert.equal((await finished(id)).status, 200)
    const late = await cancel(id)
    assert.equal(late.status, 409)
    assert.equal(late.body.code, 'CALL_ENDED')
    assert.equal((await look(id)).status, 200)
  })

  it('an asynchronous call ignores a wait that is not a number, as RFC 7240 requires', async () => {
    const answer = await start(FACT, 'wait=soon', { key: account.test })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('preference-applied'), null)
  })

  describe('that waits while its account changes', () => {
    const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }
    const breed = (name: string) => `/v1/call/dog-images/breed?breed=${name}`
    /** A name that no other call has; names of breeds have letters alone. */
    const fresh = () => randomUUID().replace(/[\d-]/g, (digit) => 'ghijklmnop'.charAt(Number(digit)))
    const CANCELLED = [409, 'CALL_CANCELLED']

    /**
     * Starts calls that wait behind four others, three of other callers and a call of their own,
     * makes the change, and lets all calls go on. The own call was sent before the change, so it
     * gets its answer, which comes last.
     */
    async function whileWaiting(
      {
        paths,
        by,
        reader = account.live,
      }: { paths: string[]; by: { key: string } | { token: string }; reader?: string },
      change: () => Promise<Answer>,
    ) {
      const answers: (() => void)[] = []
      const [ownName, answerOwn] = [fresh(), Promise.withResolvers<typeof dog>()]
      upstream.play('dog-images', ({ url }) =>
        url.includes(ownName) ? answerOwn.promise : new Promise((resolve) => answers.push(() => resolve(dog))),
      )
      const before = upstream.arrivalsOf('dog-images').length
      const sent = () => upstream.arrivalsOf('dog-images').length - before
      const startOwn = (path: string) => send(gateway, path, { headers: { prefer: 'respond-async' }, ...by })
      const first = await Promise.all([1, 2, 3].map(() => start(breed(fresh()), 'respond-async')))
      const own = await startOwn(breed(ownName))
      await until(() => sent() === 4)
      const waiting = await Promise.all(paths.map(startOwn))
      const other = await start(breed(fresh()), 'respond-async')
      const isWaiting = async (count: number) =>
        (await redis.zcard(capKeys.of('dog-images', SHARED_BUCKET, 'queue'))) === count
      await until(() => isWaiting(new Set(paths).size + 1))
      assert.ok((await change()).status < 300)
      upstream.play('dog-images', () => dog)
      for (const answer of answers) answer()
      for (const { body } of [...first, other]) assert.equal((await finished(body.id)).status, 200)
      const ended = await Promise.all(waiting.map(({ body }) => finished(body.id, { key: reader })))
      answerOwn.resolve(dog)
      assert.equal((await finished(own.body.id, { key: reader })).status, 200)
      return { ended: ended.map(({ status, body }) => [status, body.error?.code]), sent: sent() - 5 }
    }

    it('calls that wait are not sent if their key was revoked meanwhile, and the calls of other keys are', async () => {
      const { key, id } = await createKey(gateway, account.token)
      // The last two are identical, so that they share a request.
      const paths = [breed('revoked'), breed('twice'), breed('twice')]
      const revoke = () => send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: account.token })
      const { ended, sent } = await whileWaiting({ paths, by: { key } }, revoke)
      assert.deepEqual(ended, [CANCELLED, CANCELLED, CANCELLED])
      assert.equal(sent, 0)
    })

    it('calls that wait are not sent if their key may no longer call the API, and are after other changes', async () => {
      const { key, id } = await createKey(gateway, account.token)
      const change = (body: unknown) => send(gateway, `/v1/keys/${id}`, { method: 'PATCH', token: account.token, body })
      const labelled = await whileWaiting({ paths: [breed(fresh())], by: { key } }, () => change({ label: 'new' }))
      assert.deepEqual(labelled, { ended: [[200, undefined]], sent: 1 })
      const narrowed = await whileWaiting({ paths: [breed('narrowed')], by: { key } }, () =>
        change({ apis: ['dictionary'] }),
      )
      assert.deepEqual(narrowed, { ended: [CANCELLED], sent: 0 })
    })

    it('calls that wait are not sent if their log-in ended meanwhile', async () => {
      const { token, live } = await signUp(gateway)
      const calls = { paths: [breed('ended')], by: { token }, reader: live }
      const logOut = () => send(gateway, '/v1/auth/logout', { method: 'POST', token })
      assert.deepEqual(await whileWaiting(calls, logOut), { ended: [CANCELLED], sent: 0 })
    })
  })

  describe('of an MCP client', () => {
    const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    const headers = () => ({ 'x-api-key': account.live })
    const pinned = { versionNegotiation: { mode: { pin: MODERN } } }
    const dogs = { name: 'dog_images_random', arguments: {} }
    /** Holds back every answer of the upstream until the test releases it. */
    const holdDogs = () => {
      const held: (() => void)[] = []
      let closed = 0
      upstream.play('dog-images', (_arrival, response) => {
        response.once('close', () => (closed += response.writableFinished ? 0 : 1))
        const answer = { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }
        held.push(() => response.end(JSON.stringify(answer)))
      })
      return {
        release: () => {
          for (const answer of held) answer()
        },
        closed: () => closed,
        count: () => held.length,
      }
    }
    const askTask = (
      method: string,
      taskId: string,
      options: { key?: string; url?: string; path?: string; capabilities?: object } = {},
    ) =>
      send(gateway, options.path ?? '/mcp/dog-images', {
        key: options.key ?? account.live,
        ...(options.url === undefined ? {} : { url: options.url }),
        ...modernMessage(method, { taskId }, options.capabilities ?? TASKS),
      })

    it('a call of an MCP client that supports tasks becomes a task after two seconds, on every node, until it has its result', async () => {
      const dogsHeld = holdDogs()
      await withMcpClient(
        `${gateway.urls[0]}/mcp/dog-images`,
        headers(),
        { ...pinned, capabilities: TASKS },
        async ({ client, answers }) => {
          // The client does not support tasks yet. It says that it got a task.
          await assert.rejects(client.callTool(dogs), /task/)
          const task = answers.at(-1)?.result ?? assert.fail()
          assert.equal(task.resultType, 'task')
          assert.equal(task.status, 'working')
          assert.match(task.taskId, /^call_[0-9a-f]{32}$/)
          assert.ok(task.pollIntervalMs >= 500 && task.pollIntervalMs <= 5_000)
          assert.ok(task.ttlMs > 900_000 && Date.parse(task.createdAt) <= Date.parse(task.lastUpdatedAt))
          const url = gateway.urls[1] ?? ''
          const working = (await askTask('tasks/get', task.taskId, { url })).body.result
          assert.deepEqual([working.status, working.statusMessage], ['working', 'The call is under way.'])
          const other = await signUp(gateway)
          const form = { prefer: 'respond-async', 'x-gateway-response': 'raw' }
          const raw = await send(gateway, FACT, { key: account.test, headers: form })
          const unknown = { code: -32_602, message: 'There is no such task, or it has expired.' }
          for (const answer of [
            await askTask('tasks/get', task.taskId, { key: other.live }),
            await askTask('tasks/cancel', task.taskId, { key: other.live }),
            await askTask('tasks/get', `call_${'0'.repeat(32)}`),
            await askTask('tasks/get', '../keys'),
            await askTask('tasks/get', String(raw.headers.get('x-call-id')), { key: account.test, path: '/mcp' }),
            await send(gateway, '/mcp/weather', {
              key: account.live,
              ...modernMessage('tasks/get', { taskId: task.taskId }, TASKS),
            }),
          ]) {
            assert.deepEqual(answer.body.error, unknown)
          }
          const undeclared = await askTask('tasks/get', task.taskId, { capabilities: {} })
          assert.equal(undeclared.body.error.code, -32_021)
          dogsHeld.release()
          await until(async () => (await askTask('tasks/get', task.taskId)).body.result.status === 'completed')
          const { result } = (await askTask('tasks/get', task.taskId, { url })).body
          assert.equal(result.resultType, 'complete')
          const expiresAt = await redis.pexpiretime(accountKeys.call(account.id, task.taskId))
          const beforeMs = expiresAt - (Date.parse(result.createdAt) + result.ttlMs)
          assert.ok(Math.abs(beforeMs) < 60_000, `the task ends ${beforeMs} ms before its result`)
          assert.equal(result.result.structuredContent.image_url, 'https://images.dog.ceo/breeds/a/b.jpg')
        },
      )
      assert.equal(dogsHeld.count(), 1)
    })

    it('an asynchronous call of an MCP client that was cancelled as a task ends at the upstream, and its state says so', async () => {
      const dogsHeld = holdDogs()
      const { body } = await send(gateway, '/mcp/dog-images', {
        key: account.live,
        ...modernMessage('tools/call', dogs, TASKS),
      })
      const { taskId } = body.result
      assert.deepEqual(
        (await askTask('tasks/cancel', taskId, { url: gateway.urls[1] ?? '' })).body.result.resultType,
        'complete',
      )
      assert.equal((await askTask('tasks/get', taskId)).body.result.status, 'cancelled')
      await until(() => dogsHeld.closed() === 1)
      await redis.del(accountKeys.call(account.id, taskId))
      assert.equal((await askTask('tasks/get', taskId)).body.error.code, -32_602, 'expired')
      await until(async () => (await inFlight()) === 0)
    })

    it('an asynchronous call of an MCP client that fails ends as a result with the error, never as a failed task', async () => {
      let attempts = 0
      upstream.play('tech-forum', async (_arrival, response) => {
        attempts += 1
        if (attempts === 1) await new Promise((resolve) => setTimeout(resolve, 2_300))
        response.writeHead(501).end()
      })
      const { body } = await send(gateway, '/mcp/tech-forum', {
        key: account.live,
        ...modernMessage('tools/call', { name: 'tech_forum_topstories', arguments: {} }, TASKS),
      })
      const { taskId } = body.result
      await until(
        async () => (await askTask('tasks/get', taskId, { path: '/mcp/tech-forum' })).body.result.status !== 'working',
      )
      const { status, result } = (await askTask('tasks/get', taskId, { path: '/mcp/tech-forum' })).body.result
      assert.equal(status, 'completed')
      assert.equal(result.isError, true)
      assert.equal(JSON.parse(result.content[0].text).code, 'UPSTREAM_ERROR')
    })

    it('an MCP client of either generation that requests progress gets progress notifications until the result', async () => {
      for (const options of [pinned, {}]) {
        const dogsHeld = holdDogs()
        await withMcpClient(`${gateway.url}/mcp/dog-images`, headers(), options, async ({ client }) => {
          const heard: { progress: number; total?: number | undefined; message?: string | undefined }[] = []
          const result = await client.callTool(dogs, {
            onprogress: (progress) => {
              heard.push(progress)
              if (heard.length === 2) dogsHeld.release()
            },
          })
          assert.match(JSON.stringify(result), /breeds/)
          assert.ok(heard.length >= 2)
          for (const [index, { progress, total, message }] of heard.entries()) {
            // Nobody knows when the answer comes, so there is no total that a client could show.
            assert.deepEqual([total, message], [undefined, 'The call is under way.'])
            const since = progress - (heard[index - 1]?.progress ?? 0)
            assert.ok(since > 0.9 && progress === Number(progress.toFixed(1)), JSON.stringify(heard))
          }
        })
      }
    })

    it('an asynchronous call of an MCP client whose stream is closed is cancelled, and not sent when it waited', async () => {
      const dogsHeld = holdDogs()
      await withMcpClient(`${gateway.url}/mcp/dog-images`, headers(), pinned, async ({ client }) => {
        const left = new AbortController()
        await assert.rejects(client.callTool(dogs, { onprogress: () => left.abort(), signal: left.signal }))
      })
      await until(() => dogsHeld.closed() === 1)
      await until(async () => (await inFlight()) === 0)

      // The cap of two in four seconds is used up, so that the next call waits in the queue.
      upstream.play('random-facts', () => fact)
      const ids = await startIds(FACT, 2)
      await Promise.all(ids.map((id) => finished(id)))
      const arrivals = upstream.arrivalsOf('random-facts').length
      const messages: (string | undefined)[] = []
      await withMcpClient(`${gateway.url}/mcp/random-facts`, headers(), pinned, async ({ client }) => {
        const left = new AbortController()
        const onprogress = ({ message }: { message?: string | undefined }) => {
          messages.push(message)
          left.abort()
        }
        const call = client.callTool(
          { name: 'random_facts_random', arguments: {} },
          { onprogress, signal: left.signal },
        )
        await assert.rejects(call)
      })
      assert.match(
        messages[0] ?? '',
        /^The call has place 1 in the queue; the gateway expects to run it in about \d s\.$/,
      )
      await until(async () => (await inFlight()) === 0)
      const next = (await startIds(FACT, 1))[0] ?? ''
      assert.equal((await finished(next)).status, 200)
      assert.equal(upstream.arrivalsOf('random-facts').length, arrivals + 1)
    })
  })

  it('an asynchronous call is finished although the node that took it was killed', async () => {
    let isHeld = true
    upstream.play('dog-images', async () => {
      while (isHeld) await new Promise((resolve) => setTimeout(resolve, 20))
      return { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }
    })
    const { child, url } = await gateway.startWebProcess()
    const taken = await start('/v1/call/dog-images/random', 'respond-async', { url })
    assert.equal(taken.status, 202)
    const id = String(taken.headers.get('x-call-id'))
    await until(() => upstream.arrivalsOf('dog-images').length > 0)
    child.kill('SIGKILL')
    isHeld = false
    assert.equal((await finished(id)).status, 200)
    await until(async () => (await inFlight()) === 0)
  })

  it('an asynchronous call that was lost ends at its deadline', async () => {
    const id = `call_${'a'.repeat(32)}`
    const past = Date.now() - 60_000
    const call = {
      id,
      accountId: account.id,
      slug: 'dog-images',
      mode: 'live',
      enqueuedAt: past,
      deadline: past + 1_000,
    }
    await redis.set(accountKeys.call(account.id, id), JSON.stringify(call), 'EX', 60)
    const answer = await look(id)
    assert.equal(answer.status, 503)
    assert.equal(answer.body.error.code, 'DEADLINE_EXCEEDED')
  })
})
