import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { Worker } from 'bullmq'
import { sql } from 'kysely'
import { closeContext, openContext } from '../../src/context.ts'
import { openDatabase } from '../../src/db/database.ts'
import { insertUser } from '../../src/db/users.ts'
import { FleetReader } from '../../src/fleet/fleet-reader.ts'
import { readStores } from '../../src/fleet/stores.ts'
import { UpstreamRowReader } from '../../src/fleet/upstream-rows.ts'
import { noteFailure } from '../../src/health/record.ts'
import { UsageFlusher } from '../../src/limits/usage-flusher.ts'
import { recordUsage } from '../../src/limits/usage-ledger.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { CALL_JOB } from '../../src/queue/call-queue.ts'
import { enqueueProbe } from '../../src/queue/probe-job.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { keys, upstreamKeys } from '../../src/redis/keys.ts'
import { openTestConsole, type TestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { startRedisOnSmallDisk } from '../support/redis-server.ts'
import { connectRedis } from '../support/services.ts'

describe('the fleet as operators read it', () => {
  let console_: TestConsole

  before(async () => {
    console_ = await openTestConsole({ SIGNUP: 'approval' })
  })
  after(async () => await console_.stop())

  const get = async (url: string) => await console_.app.inject({ url, headers: console_.bearer })
  const overview = async (slug: string) =>
    (await get('/v1/operator/overview')).json().upstreams.find((row: { slug: string }) => row.slug === slug)

  it('the fleet as operators read it has the same numbers at the same moment in the API, on the page and in the metrics', async (t) => {
    const { queues, caps, catalog } = console_.context
    const api = catalog.get('mock-data') ?? assert.fail()
    const redis = openRedis(console_.config.redisUrls, 'blocking', console_.context.log)
    // A worker takes jobs ahead of their permits: five of its six calls wait for a permit.
    const held = Promise.withResolvers<void>()
    const options = { connection: redis, prefix: LANE.prefix, concurrency: 10 }
    const worker = new Worker(LANE.name, () => held.promise, options)
    t.after(async () => {
      held.resolve()
      await worker.close()
      await closeRedis(redis)
    })
    const calls = Array.from({ length: 6 }, () => ({ id: randomUUID(), isAsync: false, accountId: 'a', weight: 1 }))
    await Promise.all(calls.map(({ id }) => queues.of('mock-data').add(CALL_JOB, { slug: 'mock-data' }, { jobId: id })))
    const entry = { slug: 'mock-data', bucket: SHARED_BUCKET }
    const cap = caps.of(api, SHARED_BUCKET)
    for (const call of calls.slice(1)) await cap.joinWaitQueue({ ...call, ...entry }, Date.now() + 600_000)
    await until(async () => (await queues.of('mock-data').getJobCounts('active')).active === 6)
    await until(async () => (await overview('mock-data')).queue.waiting === 5)
    const [row, page, metrics] = await Promise.all([overview('mock-data'), get('/'), get('/metrics')])
    assert.deepEqual([row.queue.waiting, row.queue.active], [5, 1])
    assert.match(page.body, /data-place="mock-data waiting"[^>]*><b>5<\/b>/)
    assert.match(page.body, /data-place="mock-data active"[^>]*><b>1<\/b>/)
    assert.match(metrics.body, /^agw_queue_waiting\{slug="mock-data",process="ops"\} 5$/m)
    assert.match(metrics.body, /^agw_queue_active\{slug="mock-data",process="ops"\} 1$/m)
  })

  it('the fleet as operators read it has the settings of Redis that lose calls, as Redis says them', async () => {
    const { redis, db } = console_.context
    const settings = async () => {
      const { evictionPolicy, hasFile, isFileFailing } = (await readStores(redis, db)).redis ?? assert.fail()
      return { evictionPolicy, hasFile, isFileFailing }
    }
    assert.deepEqual(await settings(), { evictionPolicy: 'noeviction', hasFile: true, isFileFailing: false })
    const configure = async (policy: string, appendonly: string) => {
      await redis.call('CONFIG', 'SET', 'maxmemory-policy', policy)
      await redis.call('CONFIG', 'SET', 'appendonly', appendonly)
    }
    await configure('volatile-lru', 'no')
    assert.deepEqual(await settings(), { evictionPolicy: 'volatile-lru', hasFile: false, isFileFailing: false })
    await configure('noeviction', 'yes')
  })

  it('the fleet as operators read it shows that Redis is a replica or cannot write its file, and does not treat processes as dead meanwhile', async (t) => {
    const { config, services } = console_
    const { url, stop } = await startRedisOnSmallDisk(services.folder, 64)
    const context = await openContext({ ...config, redisUrls: [url] }, console_.context.log, 'ops')
    t.after(async () => {
      await closeContext(context)
      await stop()
    })
    const { redis, clock } = context
    await until(() => redis.status === 'ready')
    const worker = { id: 'w', kind: 'worker', at: clock.now() - 60_000, startedAt: 1 }
    await redis.hset(keys.processes, worker.id, JSON.stringify(worker))
    await redis.call('REPLICAOF', '127.0.0.1', '1')
    // A refused write makes the client connect again, so a look at Redis may fail.
    await until(async () => {
      const replica = await new FleetReader(context).snapshot()
      if (replica.stores.redis === null) return false
      const gravest = replica.problems.filter(({ rank }) => rank === 0).map(({ runbook }) => runbook)
      assert.deepEqual([replica.processes, gravest], [null, ['not-ready']])
      return true
    })
    await until(() => redis.call('REPLICAOF', 'NO', 'ONE').then(Boolean, () => false))
    await until(() => redis.status === 'ready')
    await redis.set('large', 'x'.repeat(100_000)).catch(() => undefined)
    await until(async () => (await redis.set('small', '').catch(({ message }) => message)).startsWith('MISCONF'))
    const { stores, processes, problems, upstreams } = await new FleetReader(context).snapshot()
    assert.deepEqual([stores.redis?.isFileFailing, processes], [true, null])
    assert.deepEqual(
      problems.filter(({ rank }) => rank === 0).map(({ runbook }) => runbook),
      ['redis-disk'],
    )
    const [row] = upstreams
    assert.ok(row?.health && row.queue, 'what can be read is known')
  })

  it('the fleet as operators read it shows that Redis is full, and which processes are alive meanwhile', async (t) => {
    const { redis, url, stop } = await connectRedis()
    const context = await openContext({ ...console_.config, redisUrls: [url] }, console_.context.log, 'web')
    t.after(async () => {
      await closeContext(context)
      await stop()
    })
    const read = async () => await new FleetReader(context).snapshot()
    await until(async () => (await read()).processes?.length === 1)
    assert.equal((await read()).stores.redis?.isFull, false)
    await redis.call('CONFIG', 'SET', 'maxmemory', '1')
    const { processes, problems } = await read()
    assert.deepEqual(
      processes?.map(({ kind }) => kind),
      ['web'],
    )
    const gravest = problems.flatMap(({ rank, label }) => (rank === 0 ? [label] : []))
    assert.deepEqual(gravest, ['Redis full', 'No worker'])
    await redis.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    assert.equal((await read()).stores.redis?.isFull, false, 'it makes room')
  })

  it('the fleet as operators read it has an API that is paused and switched off as paused, and alerts about neither', async () => {
    const change = async (path: string, method: 'PATCH' | 'POST', payload: object = {}) => {
      const url = `/v1/operator/upstreams/trivia${path}`
      const { statusCode } = await console_.app.inject({ url, method, payload, headers: console_.bearer })
      assert.equal(statusCode, 200)
    }
    const read = async () => {
      const snapshot = await new FleetReader(console_.context).snapshot()
      const isListed = snapshot.problems.some(({ label }) => label === 'Paused')
      return [snapshot.upstreams.find(({ slug }) => slug === 'trivia')?.paused, isListed]
    }
    const gauge = async () => /^agw_queue_paused\{slug="trivia".*\} (.)$/m.exec((await get('/metrics')).body)?.[1]
    await change('/pause', 'POST')
    assert.deepEqual(await read(), ['refuse', true])
    await until(async () => (await gauge()) === '1')
    await change('', 'PATCH', { enabled: false })
    assert.deepEqual(await read(), ['refuse', false])
    await until(async () => (await gauge()) === '0')
    await change('', 'PATCH', { enabled: null })
    await change('/resume', 'POST')
  })

  it('the fleet as operators read it counts calls that wait, including calls that share a job', async () => {
    const { queues } = console_.context
    const call = (id: string): CallJob => ({
      ...{ v: 1, id: `call_${id.repeat(32)}`, accountId: 'a', mode: 'live', slug: 'timezone', endpoint: '/current' },
      ...{ parameters: {}, extra: [], raw: false, isAsync: false, replyTo: 'x', limitsAcquiredAt: 1, deadline: 2 },
    })
    const add = (id: string, mayShareJob: boolean) => queues.enqueue({ call: call(id), mayShareJob })
    await Promise.all([...['a', 'b', 'c'].map((id) => add(id, true)), add('d', false)])
    assert.equal((await queues.of('timezone').getJobCounts('waiting')).waiting, 2)
    await until(async () => (await overview('timezone')).queue.waiting > 0)
    assert.equal((await overview('timezone')).queue.waiting, 4)
  })

  it('the fleet as operators read it shows an open breaker only if a breaker is open, not if an API is down by its score', async () => {
    const { redis } = console_.context
    const breaker = async () => /^agw_breaker_open\{slug="trivia".*\} (\d)$/m.exec((await get('/metrics')).body)?.[1]
    const state = { state: 'Down', at: String(Date.now()), ok: '1', fail: '9' }
    await redis.hset(upstreamKeys.health('trivia'), { ...state, open: '0' })
    await until(async () => (await overview('trivia')).health.status === 'Down')
    assert.equal(await breaker(), '0')
    await redis.hset(upstreamKeys.health('trivia'), { ...state, open: '1', trialAt: '1' })
    await until(async () => (await breaker()) === '1')

    // If it is switched off, there is no alert, because nobody can fix it.
    const enable = async (enabled: boolean | null) =>
      await console_.app.inject({
        ...({ method: 'PATCH', url: '/v1/operator/upstreams/trivia', headers: console_.bearer } as const),
        payload: { enabled },
      })
    await enable(false)
    await until(async () => !/^agw_(health_score|breaker_open)\{slug="trivia"/m.test((await get('/metrics')).body))
    await enable(null)
  })

  it('the fleet as operators read it says why the last attempt failed, and which accounts called, with their refusals', async () => {
    const { redis, db, telemetry } = console_.context
    const failure = { at: Date.now(), code: 'UPSTREAM_ERROR', words: 'HTTP 500 in 87 ms', isNetwork: false }
    await noteFailure(redis, 'weather', failure)
    const id = randomUUID()
    await insertUser(db, { id, email: 'busy@example.com', passwordHash: '-', signupNetwork: null })
    for (const [code, status] of [
      [undefined, 200],
      ['RATE_LIMIT_EXCEEDED', 429],
      ['UPSTREAM_ERROR', 502],
      ['UPSTREAM_NOT_FOUND', 404],
    ] as const)
      telemetry.minutes.add({ slug: 'weather', code, status, accountId: id })
    await telemetry.minutes.flush()
    await until(async () => (await overview('weather')).recent.failed === 1)
    const row = await overview('weather')
    assert.equal(row.health.lastFailure.words, 'HTTP 500 in 87 ms')
    // "Not found" is an answer, a limit is the caller's, and the rest are failures of the upstream.
    assert.deepEqual(
      { ...row.recent, upstreamP95Ms: null },
      { answered: 2, refused: 1, failed: 1, upstreamP95Ms: null },
    )
    const { accounts } = (await get('/v1/operator/overview')).json()
    assert.deepEqual(accounts, [{ id, email: 'busy@example.com', calls: 4, limited: 1, refused: 1, failed: 1 }])
  })

  it('the fleet as operators read it has what only an operator can mend, though all processes and stores are there', async () => {
    const { db, settings } = console_.context
    const labels = async () => {
      const { problems } = (await get('/v1/operator/overview')).json()
      return problems.map(({ label, slug }: { label: string; slug: string | null }) => [label, slug].join(' '))
    }
    const url = '/v1/operator/upstreams/news'
    await console_.app.inject({ method: 'PATCH', url, headers: console_.bearer, payload: { key: 'secret-of-news' } })
    assert.ok(!(await labels()).includes('Key unreadable news'))
    await insertUser(db, { id: randomUUID(), email: 'new@example.com', passwordHash: '-', signupNetwork: null })
    await db.updateTable('upstream_settings').set({ key_secret_id: 'another' }).where('slug', '=', 'news').execute()
    await settings.read()
    // A version starts whose migrations did not run.
    const { rows } = await sql<{ name: string }>`
      delete from kysely_migration where name = (select max(name) from kysely_migration) returning name`.execute(db)
    await until(async () => (await labels())[0] === 'Not ready ')
    const found = await labels()
    for (const label of ['Key unreadable news', 'Approval ']) assert.ok(found.includes(label), label)
    const { body: metrics } = await get('/metrics')
    assert.match(metrics, /^agw_problems\{rank="0",label="Not ready",process="ops"\} 1$/m)
    assert.match(metrics, /^agw_problems\{rank="1",label="Key unreadable",process="ops"\} 1$/m)
    const { upstreams } = (await get('/v1/operator/upstreams')).json()
    const news = upstreams.find(({ slug }: { slug: string }) => slug === 'news')
    assert.deepEqual([news.hasKey, news.keyUnreadable, news.enabled], [false, true, false])

    await db.updateTable('users').set({ approved_at: new Date() }).execute()
    await sql`insert into kysely_migration (name, timestamp) values (${rows[0]?.name}, '')`.execute(db)
    await until(async () => !(await labels()).includes('Not ready '))
    assert.ok(!(await labels()).includes('Approval '))
  })

  it('the fleet as operators read it has the accounts that wait for approval, and says if it leaves some out', async () => {
    const { db } = console_.context
    const users = async (query: string) => (await get(`/v1/operator/users?email=%40waits.example${query}`)).json()
    const account = (name: string) => ({ id: randomUUID(), email: `${name}@waits.example`, password_hash: '-' })
    const [waiting, ...others] = ['waiting', 'approved', 'disabled'].map(account)
    assert.ok(waiting)
    await db
      .insertInto('users')
      .values([waiting, ...others])
      .execute()
    for (const [column, email] of [
      ['approved_at', 'approved@waits.example'],
      ['disabled_at', 'disabled@waits.example'],
    ] as const) {
      await db
        .updateTable('users')
        .set({ [column]: new Date() })
        .where('email', '=', email)
        .execute()
    }
    assert.equal((await users('')).users.length, 3)
    const found = await users('&unapproved=true')
    assert.deepEqual([found.users.map(({ id }: { id: string }) => id), found.more], [[waiting.id], false])
    assert.equal(found.users[0].liveCallsNeed, 'approval')
    const many = Array.from({ length: 98 }, (_, index) => account(`many-${index}`))
    await db.insertInto('users').values(many).execute()
    const all = await users('')
    assert.deepEqual([all.users.length, all.more], [100, true])
    await db.deleteFrom('users').where('email', 'like', '%@waits.example').execute()
  })

  it('the fleet as operators read it does not count a probe as a call that waits', async () => {
    await enqueueProbe(console_.context.queues, 'currency', { name: `now-${randomUUID()}` })
    const [job] = await console_.context.queues.of('currency').getJobs('waiting')
    assert.ok(job, 'no worker takes the probe')
    const { upstreams } = await new FleetReader(console_.context).snapshot()
    assert.equal(upstreams.find(({ slug }) => slug === 'currency')?.queue?.waiting, 0)
  })

  it('the fleet as operators read it costs a script for each API once in four seconds while nobody calls, and at once for one that is called', async () => {
    const { redis, queues, catalog, clock } = console_.context
    const scripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
    // Every API has a probe that is scheduled.
    await enqueueProbe(queues, 'weather', { name: `scheduled-${randomUUID()}`, delayMs: 600_000 })
    const rows = new UpstreamRowReader(console_.context)
    const now = clock.now()
    const called = { at: now - 5_000, calls: new Map([['weather|OK', 1]]), queue: new Map(), upstream: new Map() }
    const read = async (slots: (typeof called)[]) => {
      const before = await scripts()
      const found = await rows.read({ minutes: [], slots, now })
      return { scripts: (await scripts()) - before, found }
    }
    // The console runs scripts of its own now and then, so the fewest of three reads count.
    const fewest = async (slots: (typeof called)[]) =>
      Math.min((await read(slots)).scripts, (await read(slots)).scripts, (await read(slots)).scripts)
    assert.equal((await read([])).found.length, catalog.size)
    const idle = await fewest([])
    assert.ok(idle < catalog.size / 2, `${idle} scripts for APIs that nobody calls`)
    assert.ok((await fewest([called])) > idle, 'the state of an API that is called is read')
  })

  it('the fleet as operators read it shows that Postgres answers but accepts no usage, until it accepts usage again', async () => {
    const { redis, db, log } = console_.context
    const call = { accountId: randomUUID(), slug: 'weather', mode: 'live', limitsAcquiredAt: 1 } as const
    const isFailing = async () => (await redis.exists(keys.usageFailing)) === 1
    const usage = new UsageFlusher({ db, redis, log })
    await sql`alter table usage_daily rename to usage_elsewhere`.execute(db)
    await recordUsage(redis, [{ call, verdict: { reach: 'answered' } }], randomUUID())
    usage.open()
    await until(isFailing)
    // It began a while ago.
    await redis.decrby(keys.usageFailing, 60_000)
    const problem = async () =>
      (await get('/v1/operator/overview')).json().problems.find(({ label }: { label: string }) => label === 'Usage')
    await until(async () => (await problem()) !== undefined)
    assert.match((await problem()).text, /for 1 min/)
    await sql`alter table usage_elsewhere rename to usage_daily`.execute(db)
    await until(async () => !(await isFailing()))
    await usage.close()
    const rows = await db.selectFrom('usage_daily').select('calls').where('user_id', '=', call.accountId).execute()
    assert.deepEqual(
      rows.map(({ calls }) => Number(calls)),
      [1],
    )
  })

  it('the fleet as operators read it has the state of Redis from the start, even if Postgres does not answer', async () => {
    const { context, config } = console_
    const proxy = await startPostgresProxy(config.databaseUrl)
    proxy.isSilent = true
    const db = openDatabase(proxy.url, context.log)
    const fleet = new FleetReader({ ...context, db })
    const first = fleet.snapshot()
    // The next snapshot, which the reader takes while it still waits for Postgres.
    let second = first
    await until(() => {
      second = fleet.snapshot()
      return second !== first
    })
    for (const snapshot of [await second, await first]) {
      const { redis, postgres } = snapshot.stores
      assert.deepEqual([redis !== null, postgres], [true, null])
    }
    await db.destroy()
    await proxy.close()
  })

  it('the fleet as operators read it does not depend on the clock of the machine', async (context) => {
    const { redis, clock, telemetry } = console_.context
    const worker = { id: 'w', kind: 'worker', host: 'h', pid: 1, busy: 0, lagMs: 0, memoryBytes: 1, inFlight: 0 }
    const beat = async () => {
      const at = clock.now()
      await redis.hset(keys.processes, 'w', JSON.stringify({ ...worker, startedAt: at, at, isDraining: false }))
    }
    const realNow = Date.now()
    for (const [step, stepMs] of [60_000, -3_600_000].entries()) {
      context.mock.timers.enable({ apis: ['Date'], now: realNow + stepMs })
      await beat()
      telemetry.minutes.add({ slug: 'countries', accountId: undefined, status: 200 })
      await telemetry.minutes.flush()
      await until(async () => {
        const { processes, upstreams } = (await get('/v1/operator/overview')).json()
        const countries = upstreams.find(({ slug }: { slug: string }) => slug === 'countries')
        const isAlive = processes.some(({ kind }: { kind: string }) => kind === 'worker')
        return isAlive && countries.recent.answered === step + 1
      }, 5_000)
      context.mock.timers.reset()
    }
    await redis.hdel(keys.processes, 'w')
  })

  it('the fleet as operators read it is unknown, not zero and healthy, while Redis does not answer', async () => {
    const asker = openRedis(console_.config.redisUrls, 'blocking', console_.context.log)
    await asker.call('CLIENT', 'PAUSE', '2500', 'ALL')
    await until(async () => (await overview('weather')).health === null)
    const { problems, processes, stores, callsLastMinute } = (await get('/v1/operator/overview')).json()
    assert.equal(problems[0].label, 'Redis')
    assert.deepEqual([processes, stores.redis, callsLastMinute], [null, null, null])
    const metrics = await get('/metrics')
    assert.match(metrics.body, /^agw_redis_up\{process="ops"\} 0$/m)
    assert.doesNotMatch(metrics.body, /^agw_health_score\{/m)
    // The process's own metrics, on METRICS_PORT, say nothing of the fleet.
    const own = await console_.context.telemetry.metrics.registry.metrics()
    assert.match(own, /^agw_build_info\{/m)
    assert.doesNotMatch(own, /agw_redis_up|agw_postgres_up/)
    await asker.ping()
    await closeRedis(asker)
  })
})
