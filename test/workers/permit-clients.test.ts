import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { PERMIT_AGE_MS_MAX } from '../../src/caps/timing.ts'
import { CAPS_KEPT_MAX, UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import { applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { openDatabase } from '../../src/db/database.ts'
import { HealthCache } from '../../src/health/health-cache.ts'
import { recordSuccesses } from '../../src/health/record.ts'
import { createLog } from '../../src/log.ts'
import { SHARED_BUCKET, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { RedisClock } from '../../src/redis/clock.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { capKeys, keys } from '../../src/redis/keys.ts'
import { AttemptError } from '../../workers/errors/attempt-error.ts'
import { GrantLedger } from '../../workers/permits/grant-ledger.ts'
import { permitRequestOf } from '../../workers/permits/local-waiters.ts'
import { PermitClient } from '../../workers/permits/permit-client.ts'
import { PermitClients } from '../../workers/permits/permit-clients.ts'
import { AHEAD_LIFE_MS } from '../../workers/permits/permits-ahead.ts'
import type { Permit } from '../../workers/permits/permits-in-use.ts'
import { until } from '../support/gateway.ts'
import { openMonitor } from '../support/monitor.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { startServices } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** The request of a call that never had a place, with a minute's time. */
function requestOf(
  callId: string,
  fields: Partial<WaitQueueEntry> & { timeMs?: number; tag?: number | undefined } = {},
) {
  const { timeMs = 60_000, tag, ...more } = fields
  const identity = { id: callId, accountId: 'account', isAsync: false, weight: 1 }
  const entry: WaitQueueEntry = { ...identity, slug: 'weather', bucket: SHARED_BUCKET, ...more }
  return permitRequestOf(entry, Date.now() + timeMs, tag)
}

async function open(t: TestContext) {
  const services = await startServices()
  const redis = openRedis([services.redisUrl], 'blocking', log)
  const db = openDatabase(services.databaseUrl, log)
  // Redis has lost nothing, so caps start with an empty past.
  await redis.set(keys.rememberedSince, 0)
  t.after(async () => {
    await db.destroy()
    await closeRedis(redis)
    await services.stop()
  })
  const { redisUrl, databaseUrl } = services
  return { redis, db, redisUrl, databaseUrl }
}

/** The permit clients of a worker on these stores. */
async function openClients({ redis, db }: Pick<Awaited<ReturnType<typeof open>>, 'redis' | 'db'>) {
  const catalog = await loadCatalog(new Map())
  const caps = new UpstreamCaps({ redis, db, catalog })
  const clock = new RedisClock(redis, log)
  const grants = new GrantLedger(db, clock, log)
  const health = new HealthCache({ redis, announcements: { on: () => undefined }, clock, log }, [{ slug: 'weather' }])
  return { catalog, caps, health, clients: new PermitClients({ caps, catalog, log, grants, health }) }
}

/**
 * The permit client of an API whose cap has room for a thousand requests a second, `concurrency` at
 * once.
 */
async function openWide(stores: Awaited<ReturnType<typeof open>>, concurrency: number) {
  const { catalog, caps, clients } = await openClients(stores)
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency, rates: [{ max: 1_000, seconds: 1 }] } })
  const client = clients.of(api, SHARED_BUCKET)
  const acquire = (id: string) =>
    client.acquire(requestOf(id), { remainingMs: () => 30_000, signal: new AbortController().signal })
  const count = (name: 'leases' | 'queue' | 'waiters') => stores.redis.zcard(capKeys.of('weather', SHARED_BUCKET, name))
  return { ...stores, catalog, caps, clients, client, acquire, count }
}

test('a slow answer does not raise the number of requests that the upstream says are left', async (t) => {
  const { redis, db } = await open(t)
  const catalog = await loadCatalog(new Map())
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 10, rates: [{ max: 100, seconds: 3_600 }] } })
  const cap = new UpstreamCaps({ redis, db, catalog }).of(api, SHARED_BUCKET)
  const left = () => redis.hget(capKeys.of('weather', SHARED_BUCKET, 'state'), 'left')
  const waiters = ['a', 'b'].map((id) => waiterOf(`account|${id}`, 0))
  const { granted } = await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  const respond = async (id: string, requests: number) => {
    const observedBy = granted.get(`account|${id}`) ?? assert.fail()
    await cap.applyUpstreamLimit({ remaining: { requests, resetMs: 60_000 }, observedBy })
    await cap.release({ ids: [observedBy], meanMs: 1 })
  }
  await respond('b', 2)
  // The other permit may not have been counted yet.
  assert.equal(await left(), '1')
  await respond('a', 5)
  assert.equal(await left(), '1')
})

test('all permits that calls want in a tick of the event loop are a single command, and so are all permits that end in it', async (t) => {
  const { redisUrl, acquire, count } = await openWide(await open(t), 10)
  const leases = () => count('leases')
  const first = await acquire('first')
  first.release(1)
  await until(async () => (await leases()) === 0)
  let scripts = 0
  const monitor = await openMonitor(redisUrl, ({ name }) => {
    if (name === 'evalsha' || name === 'eval') scripts += 1
  })
  const permits = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(acquire))
  assert.equal(await leases(), 8)
  for (const permit of permits) permit.release(1)
  await until(async () => (await leases()) === 0)
  // The monitor hears of a command later than the connection that sent it.
  await until(() => scripts >= 2)
  monitor.close()
  assert.equal(scripts, 2)
})

/**
 * A cap with one request a second, whose upstream takes 400 ms, and waiters with as much time as
 * they say.
 */
async function openNarrow(t: TestContext) {
  const { redis, db } = await open(t)
  const { catalog, clients, health } = await openClients({ redis, db })
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 1 }] } })
  await recordSuccesses(redis, 'weather', { latenciesMs: [400, 400, 400] })
  await health.read('weather')
  const client = clients.of(api, SHARED_BUCKET)
  const acquire = (id: string, remainingMs: () => number) =>
    client.acquire(requestOf(id, { accountId: id }), { remainingMs, signal: new AbortController().signal })
  const log = () => redis.zcard(capKeys.of('weather', SHARED_BUCKET, 'log'))
  return { acquire, log }
}

const withCode = (code: string) => (error: unknown) => error instanceof AttemptError && error.code === code

test('a permit that comes when less than the usual answer time is left is given back, and the next waiter gets it', async (t) => {
  const { acquire, log } = await openNarrow(t)
  const first = await acquire('first', () => 30_000)
  let leftMs = 30_000
  const late = acquire('late', () => leftMs)
  const next = acquire('next', () => 30_000)
  // Now the call has only the time left that the answer takes.
  leftMs = 400
  await assert.rejects(late, (error: unknown) => {
    assert.ok(withCode('UPSTREAM_CAP_EXHAUSTED')(error))
    return (error as AttemptError).retryAfterMs !== undefined && (error as AttemptError).retryAfterMs !== 0
  })
  const permit = await next
  // The permit of the first, if its window is not over yet, and the permit of this call.
  assert.ok((await log()) <= 2)
  first.release(1)
  permit.release(1)
})

test('a call that has no time left for an answer does not use a permit that comes at once', async (t) => {
  const { acquire, log } = await openNarrow(t)
  await assert.rejects(
    acquire('late', () => 599 - 200),
    withCode('DEADLINE_EXCEEDED'),
  )
  const permit = await acquire('next', () => 700)
  assert.equal(await log(), 1)
  permit.release(1)
})

test('a worker can use a permit although Redis takes longer to answer than a permit lasts', async (t) => {
  const { db, redisUrl } = await open(t)
  const { redis, proxy } = await connectThroughProxy(t, redisUrl, 'blocking')
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('weather') ?? assert.fail()
  const acquire = (id: string) =>
    clients
      .of(api, SHARED_BUCKET)
      .acquire(requestOf(id), { remainingMs: () => 30_000, signal: new AbortController().signal })
  const first = await acquire('first')
  first.release(1)
  // There and back.
  proxy.delay(1.2 * (PERMIT_AGE_MS_MAX / 2))
  let usable = 0
  for (let tries = 0; tries < 10 && usable === 0; tries += 1) {
    const permit = await acquire('slow')
    if (permit.isFresh()) usable += 1
    permit.giveBack()
  }
  assert.equal(usable, 1)
})

test('a poll that is sent again because its reply was lost brings the same permit, and the same refusal', async (t) => {
  const { redis: direct, db, redisUrl } = await open(t)
  const { redis, proxy } = await connectThroughProxy(t, redisUrl, 'blocking')
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 60, seconds: 3_600 }] } })
  const { signal } = new AbortController()
  const acquire = (id: string) =>
    clients.of(api, SHARED_BUCKET).acquire(requestOf(id), { remainingMs: () => 30_000, signal })
  const logged = () => direct.zrange(capKeys.of('weather', SHARED_BUCKET, 'log'), '0', '-1')
  const losing = async <T>(started: () => Promise<T>, isDone: () => Promise<boolean>): Promise<T> => {
    proxy.loseReplies()
    const waiting = started()
    waiting.catch(() => undefined)
    await until(isDone)
    proxy.heal()
    proxy.reset()
    return await waiting
  }
  const first = await acquire('first')
  first.release(1)
  const permit = await losing(
    () => acquire('again'),
    async () => (await logged()).length === 2,
  )
  assert.deepEqual(await logged(), [first.id, permit.id])
  // Whether it is too old by now or not, the cap knows it only by this name.
  permit.giveBack()
  await until(async () => (await logged()).length === 1)
  const evicted = capKeys.of('weather', SHARED_BUCKET, 'evicted')
  await direct.zadd(evicted, Date.now() + 60_000, 'account|evicted')
  const refused = losing(
    () => acquire('evicted'),
    async () => (await direct.exists(evicted)) === 0,
  )
  await assert.rejects(refused, (error) => error instanceof AttemptError && error.code === 'UPSTREAM_CAP_EXHAUSTED')
  assert.deepEqual(await logged(), [first.id])
})

test("caps that operators change hold at once for calls with callers' own keys and without", async (t) => {
  const { redis, db } = await open(t)
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('code-host-user') ?? assert.fail()
  for (const bucket of [SHARED_BUCKET, 'key:1']) {
    applySettings(api, {})
    const { signal } = new AbortController()
    const acquire = (id: string) =>
      clients
        .of(api, bucket)
        .acquire(requestOf(id, { slug: api.slug, bucket, timeMs: 4_000_000 }), { remainingMs: () => 60_000, signal })
    const permits = [await acquire('a')]
    applySettings(api, { caps: { concurrency: 2, rates: [{ max: 2, seconds: 3_600 }] } })
    permits.push(await acquire('b'))
    const third = acquire('c')
    await until(async () => (await redis.zcard(capKeys.of(api.slug, bucket, 'waiters'))) === 1)
    applySettings(api, { caps: { concurrency: 3, rates: [{ max: 3, seconds: 3_600 }] } })
    permits.push(await third)
    for (const permit of permits) permit.release(1)
    await until(async () => (await redis.zcard(capKeys.of(api.slug, bucket, 'leases'))) === 0)
  }
})

test('calls that wait for a permit when an operator holds the calls of their upstream go on waiting until it is resumed', async (t) => {
  const { redis, db } = await open(t)
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('code-host-user') ?? assert.fail()
  for (const bucket of [SHARED_BUCKET, 'key:1']) {
    applySettings(api, { caps: { concurrency: 1, rates: [] } })
    const client = clients.of(api, bucket)
    const { signal } = new AbortController()
    const acquire = (id: string) =>
      client.acquire(requestOf(id, { slug: api.slug, bucket }), { remainingMs: () => 60_000, signal })
    const first = await acquire('first')
    let granted = 0
    const waiting = ['a', 'b'].map(async (id) => {
      const permit = await acquire(id)
      granted += 1
      permit.release(1)
    })
    await until(async () => (await redis.zcard(capKeys.of(api.slug, bucket, 'waiters'))) === 2)
    applySettings(api, { caps: { concurrency: 1, rates: [] }, pausedMode: 'hold' })
    first.release(1)
    await until(async () => (await redis.zcard(capKeys.of(api.slug, bucket, 'leases'))) === 0)
    // If a poll followed, its reply would come before the reply to this poll.
    client.wake('account|a')
    await setImmediate()
    await setImmediate()
    await redis.ping()
    assert.equal(granted, 0)
    applySettings(api, { caps: { concurrency: 1, rates: [] } })
    await Promise.all(waiting)
    await until(async () => (await redis.zcard(capKeys.of(api.slug, bucket, 'leases'))) === 0)
  }
})

test('a call that needs a permit for another request is refused at once if the permit would come too late, and waits for it otherwise', async (t) => {
  const { redis, db } = await open(t)
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 3_600 }] } })
  const leaving = new AbortController()
  const acquire = (id: string, timeMs: number, tag?: number) =>
    clients
      .of(api, SHARED_BUCKET)
      .acquire(requestOf(id, { timeMs, tag }), { remainingMs: () => timeMs, signal: leaving.signal })
  const first = await acquire('a', 30_000)
  first.release(1)
  const patient = acquire('b', 4_000_000, 0.5)
  patient.catch(() => undefined)
  const queue = () => redis.zrange(capKeys.of(api.slug, SHARED_BUCKET, 'queue'), '0', '-1')
  await until(async () => (await queue()).length === 1)
  const isRefusal = (error: unknown) => {
    assert.ok(error instanceof AttemptError)
    assert.deepEqual([error.code, error.reach], ['UPSTREAM_CAP_EXHAUSTED', 'refused'])
    assert.ok((error.retryAfterMs ?? 0) > 3_000_000)
    return true
  }
  await assert.rejects(acquire('a', 30_000, 0.25), isRefusal)
  assert.deepEqual(await queue(), ['account|b'])
  leaving.abort('left')
  await assert.rejects(patient, (reason) => reason === 'left')
  await until(async () => (await queue()).length === 0)
})

test('calls for which a closed upstream opens too late get the same reason as new calls, and cost something only if they had a place', async (t) => {
  const { redis, db } = await open(t)
  const { catalog, caps, clients } = await openClients({ redis, db })
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 15 }] } })
  const cap = caps.of(api, SHARED_BUCKET)
  const places = await Promise.all(
    [12_000, 40_000, 40_000].map(async (timeMs, index) => {
      const request = requestOf(`${index}`, { timeMs })
      const place = await cap.joinWaitQueue(request, request.deadline)
      assert.ok('tag' in place)
      return { ...request, tag: place.tag, timeMs }
    }),
  )
  await cap.applyUpstreamLimit({ closedForMs: 27_000, observedBy: 'none|1' })
  const signal = AbortSignal.timeout(20_000)
  const again = { ...requestOf('again', { timeMs: 12_000, tag: 0 }), timeMs: 12_000 }
  const rejected = [...places.filter((_, index) => index !== 1), again].map(({ timeMs, ...request }) =>
    clients.of(api, SHARED_BUCKET).acquire(request, { remainingMs: () => timeMs, signal }),
  )
  const reasons = (await Promise.allSettled(rejected)).map((result) => {
    assert.ok(result.status === 'rejected' && result.reason instanceof AttemptError)
    return [result.reason.code, result.reason.reach === 'refused']
  })
  // Of the three rejected calls the first has too little time, other calls go before the second,
  // and the last was not in the queue.
  const code = 'UPSTREAM_RATE_LIMITED'
  const costs = [false, false, true]
  assert.deepEqual(
    reasons,
    costs.map((isFree) => [code, isFree]),
  )
})

test("permits of callers' keys are served although so many other keys came that their caps were forgotten", async (t) => {
  const { redis, db } = await open(t)
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('code-host-user') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 1 } })
  const { signal } = new AbortController()
  const acquire = (id: string) =>
    clients
      .of(api, 'key:first')
      .acquire(requestOf(id, { slug: api.slug, bucket: 'key:first' }), { remainingMs: () => 30_000, signal })
  const held = await acquire('a')
  const waiting = acquire('b')
  for (let number = 0; number < 2 * CAPS_KEPT_MAX; number += 1) clients.of(api, `key:${number}`)
  assert.equal(clients.of.made.size, CAPS_KEPT_MAX)
  const late = acquire('c')
  await until(async () => (await redis.zcard(capKeys.of(api.slug, 'key:first', 'waiters'))) === 2)
  held.release(1)
  await Promise.all([waiting, late].map(async (permit) => (await permit).release(1)))
  await until(async () => (await redis.zcard(capKeys.of(api.slug, 'key:first', 'leases'))) === 0)
})

test('an upstream whose breaker has just closed gets a single request at first, and a further request for each that ends', async (t) => {
  const { redis, db } = await open(t)
  const catalog = await loadCatalog(new Map())
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 10, rates: [{ max: 1_000, seconds: 60 }] } })
  const cap = new UpstreamCaps({ redis, db, catalog }).of(api, SHARED_BUCKET)
  const ten = Array.from({ length: 10 }, (_, index) => waiterOf(`account|${index}`, 0))
  const acquire = async (ids: string[]): Promise<string[]> => {
    const { granted } = await cap.acquire({ waiters: ten, released: { ids, meanMs: 10 }, leaseMs: 60_000 })
    return [...granted.values()]
  }
  const before = await acquire([])
  assert.equal(before.length, 10)
  await cap.beginGradually()
  const rounds: number[] = []
  for (let ended = before; rounds.length < 4; ) {
    ended = await acquire(ended)
    if (ended.length > 0) rounds.push(ended.length)
  }
  assert.deepEqual(rounds, [1, 2, 4, 8])
})

test('polls without a permit leave no counts to write, and do not keep other counts from Postgres', async (t) => {
  const { redis, db } = await open(t)
  const grants = new GrantLedger(db, new RedisClock(redis, log), log)
  const caps = { concurrency: 1, rates: [{ max: 60, seconds: 3_600 }] }
  grants.add({ slug: 'dictionary', bucket: SHARED_BUCKET, caps, granted: 0 })
  grants.add({ slug: 'code-host-user', bucket: SHARED_BUCKET, caps, granted: 2 })
  const written = async () => {
    // A busy Postgres may be too slow; then the counts are kept for the next time.
    await grants.close()
    return await db.selectFrom('cap_grants').select(['slug', 'granted']).execute()
  }
  await until(async () => (await written()).length > 0)
  assert.deepEqual(await written(), [{ slug: 'code-host-user', granted: 2 }])
})

test('a worker warns of permits whose leases are gone before their renewal, and not of permits that have ended', async (t) => {
  const { redis, db } = await open(t)
  const { catalog, clients } = await openClients({ redis, db })
  const api = catalog.get('weather') ?? assert.fail()
  const warn = t.mock.method(log, 'warn')
  const client = clients.of(api, SHARED_BUCKET)
  const acquire = (id: string) =>
    client.acquire(requestOf(id), { remainingMs: () => 1_000, signal: new AbortController().signal })
  const ended = await acquire('ended')
  const held = await Promise.all(['lost', 'held'].map(acquire))
  const leases = capKeys.of('weather', SHARED_BUCKET, 'leases')
  ended.release(1)
  await until(async () => (await redis.zcard(leases)) === 2)
  await redis.zpopmin(leases)
  await until(() => warn.mock.callCount() > 0)
  assert.deepEqual(warn.mock.calls[0]?.arguments, [{ lost: 1 }, 'permit leases were gone before they were renewed'])
  // The worker does not warn again at each renewal.
  for (let renewal = 0; renewal < 2; renewal += 1) {
    const [, before] = await redis.zrange(leases, '0', '0', 'WITHSCORES')
    await until(async () => (await redis.zrange(leases, '0', '0', 'WITHSCORES'))[1] !== before)
  }
  assert.equal(warn.mock.callCount(), 1)
  for (const permit of held) permit.release(1)
})

test('permits that ended while their cap has room wait a moment, and go with the next poll or when the process ends', async (t) => {
  // The cap has too little room for permits ahead.
  const { clients, client, acquire, count } = await openWide(await open(t), 8)
  const leases = () => count('leases')
  const hold = async (id: string) => {
    const permit = await acquire(id)
    assert.ok(client.room > 0)
    // The pause lasts until the test ends it.
    t.mock.timers.enable({ apis: ['setTimeout'] })
    permit.release(1)
    for (let turn = 0; turn < 3; turn += 1) await setImmediate()
    assert.equal(await leases(), 1)
  }
  await hold('first')
  t.mock.timers.tick(10)
  t.mock.timers.reset()
  await until(async () => (await leases()) === 0)
  await hold('second')
  const third = await acquire('third')
  // One step ended the first permit and granted the other.
  assert.equal(await leases(), 1)
  t.mock.timers.reset()
  third.release(1)
  await until(async () => (await leases()) === 0)
  await hold('fourth')
  await clients.close()
  assert.equal(await leases(), 0)
})

test('permits that ended while their cap has much room wait longer for the next poll', async (t) => {
  const { client, acquire, count } = await openWide(await open(t), 64)
  const permit = await acquire('first')
  assert.ok(client.room > 32)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  permit.release(1)
  for (let turn = 0; turn < 3; turn += 1) await setImmediate()
  t.mock.timers.tick(AHEAD_LIFE_MS + 99)
  for (let turn = 0; turn < 3; turn += 1) await setImmediate()
  assert.equal(await count('leases'), 1)
  t.mock.timers.tick(1)
  t.mock.timers.reset()
  await until(async () => (await count('leases')) === 0)
})

test('a permit that ended goes to Redis at once while calls of other workers wait for a permit', async (t) => {
  const stores = await open(t)
  const { client, acquire, count } = await openWide(stores, 3)
  const { acquire: acquireElsewhere } = await openWide(stores, 3)
  const held = [await acquire('a'), await acquire('b')] as const
  assert.equal(client.room, 1)
  const taken = await acquireElsewhere('c')
  const waiting = [acquireElsewhere('d'), acquireElsewhere('e')] as const
  await until(async () => (await count('waiters')) === 2)
  held[0].release(1)
  await waiting[0]
  // The step that ended the first permit said so.
  assert.equal(client.room, 0)
  held[1].release(1)
  for (const permit of [taken, ...(await Promise.all(waiting))]) permit.release(1)
  await until(async () => (await count('leases')) === 0)
})

test('a call that joined the queue for a permit is refused at once and leaves the queue when its upstream stops answering', async (t) => {
  const { caps, catalog, redis } = await openWide(await open(t), 1)
  const cap = caps.of(catalog.get('weather') ?? assert.fail(), SHARED_BUCKET)
  let isAway = false
  const client = new PermitClient({
    ...{ slug: 'weather', bucket: SHARED_BUCKET, cap, log, grants: { add: () => undefined } },
    ...{ aheadMax: 0, isPausedByOperator: () => false, usualMs: () => 100 },
  })
  const away = new Error('the breaker is open')
  const refusal = () => (isAway ? away : undefined)
  const { signal } = new AbortController()
  const held = await client.acquire(requestOf('first'), { remainingMs: () => 30_000, signal })
  const late = client.acquire(requestOf('late'), { remainingMs: () => 30_000, signal, refusal })
  late.catch(() => undefined)
  const queued = () => redis.zcard(capKeys.of('weather', SHARED_BUCKET, 'queue'))
  await until(async () => (await queued()) === 1)
  isAway = true
  client.followHealth()
  await assert.rejects(late, away)
  await until(async () => (await queued()) === 0)
  held.release(1)
})

/**
 * Two calls at one instant, so that the poll of the second acquires a permit ahead. Time stands
 * still until `goOn`, which releases the waiting commands.
 */
async function openAhead(t: TestContext) {
  const wide = await openWide(await open(t), 64)
  const { client } = wide
  const held: Permit[] = []
  const acquire = async (id: string, tag?: number) => {
    const request = requestOf(id, { tag })
    const permit = await client.acquire(request, { remainingMs: () => 30_000, signal: new AbortController().signal })
    held.push(permit)
    return permit
  }
  const clock = t.mock.method(performance, 'now', () => 1_000)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const goOn = () => {
    clock.mock.restore()
    t.mock.timers.reset()
    for (const { release } of held.splice(0)) release(1)
  }
  t.after(goOn)
  let shown = 0
  let onEcho: (() => void) | undefined
  const monitor = await openMonitor(wide.redisUrl, ({ name, text }) => {
    if (name === 'echo') onEcho?.()
    else if (name === 'evalsha' && text.includes(':poll:')) shown += 1
  })
  t.after(() => monitor.close())
  // The monitor hears of a command later than the connection that sent it, and of all commands in
  // their order.
  const allPolls = async (): Promise<number> => {
    const isShown = new Promise<void>((resolve) => {
      onEcho = resolve
    })
    await wide.redis.echo('all are shown')
    await isShown
    return shown
  }
  await acquire('first')
  await acquire('second')
  assert.equal(await wide.count('leases'), 3)
  const before = await allPolls()
  return { ...wide, acquire, held, goOn, polls: async () => (await allPolls()) - before }
}

test('a call that comes soon after others takes the permit that the last poll acquired ahead', async (t) => {
  const { client, acquire, count, held, polls, goOn } = await openAhead(t)
  const { isFresh, hasWaited } = await acquire('third')
  assert.deepEqual([await count('leases'), isFresh(), hasWaited, await polls()], [3, true, false, 0])
  assert.equal(new Set(held.map(({ id }) => id)).size, 3)
  goOn()
  await client.close()
  assert.equal(await count('leases'), 0)
})

test('a permit ahead that no call takes goes back to the cap', async (t) => {
  const { redis, count, goOn } = await openAhead(t)
  t.mock.timers.tick(AHEAD_LIFE_MS)
  t.mock.timers.tick(AHEAD_LIFE_MS + 100)
  goOn()
  await until(async () => (await count('leases')) === 0)
  assert.equal(await redis.zcard(capKeys.of('weather', SHARED_BUCKET, 'log')), 2)
})

test('permits ahead are not used as soon as the upstream limits the gateway', async (t) => {
  const { caps, client, count, held, goOn } = await openAhead(t)
  const [first] = held
  const cap = caps.of({ slug: 'weather' }, SHARED_BUCKET)
  await cap.applyUpstreamLimit({ closedForMs: 30_000, observedBy: first?.id ?? assert.fail() })
  const late = client.acquire(requestOf('late', { timeMs: 5_000 }), {
    remainingMs: () => 5_000,
    signal: new AbortController().signal,
  })
  await assert.rejects(late, withCode('UPSTREAM_RATE_LIMITED'))
  goOn()
  await client.close()
  assert.equal(await count('leases'), 0)
})

test('a call that has a place leaves permits ahead to other calls, and a worker gives them back when it ends', async (t) => {
  const { client, acquire, redis, count, polls, goOn } = await openAhead(t)
  await acquire('placed', 7)
  assert.deepEqual([await count('leases'), await polls()], [4, 1])
  goOn()
  await client.close()
  assert.deepEqual([await count('leases'), await redis.zcard(capKeys.of('weather', SHARED_BUCKET, 'log'))], [0, 3])
})

test('permits ahead are not used as soon as an operator has changed the cap', async (t) => {
  const { catalog, acquire, polls, goOn } = await openAhead(t)
  const api = catalog.get('weather') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 3, rates: [{ max: 1_000, seconds: 1 }] } })
  const late = acquire('late')
  while ((await polls()) === 0);
  goOn()
  await late
  goOn()
})

test('permits ahead go back when the health of the upstream changes', async (t) => {
  const { client, count, goOn } = await openAhead(t)
  client.followHealth()
  t.mock.timers.tick(AHEAD_LIFE_MS + 100)
  while ((await count('leases')) > 2) await setImmediate()
  goOn()
})
