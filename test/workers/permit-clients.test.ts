import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SHARED_SCOPE } from '../../src/caps/cap-keys.ts'
import { beginCap, releasePermits, takePermits } from '../../src/caps/permit.ts'
import { tightenCap } from '../../src/caps/tighten.ts'
import { applySettings, loadCatalog, withCallerKey } from '../../src/catalog/catalog.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { RedisClock } from '../../src/redis/clock.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { GrantLedger } from '../../workers/permits/grant-ledger.ts'
import { PermitClients } from '../../workers/permits/permit-clients.ts'
import { until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

async function open(t: TestContext) {
  const services = await startServices()
  const redis = openRedis([services.redisUrl], 'waiter', log)
  const db = openDatabase(services.databaseUrl, log)
  t.after(async () => {
    await db.destroy()
    await closeRedis(redis)
    await services.stop()
  })
  return { redis, db }
}

test('what an upstream says is left is not raised by an answer that was slow', async (t) => {
  const { redis } = await open(t)
  const caps = { concurrency: 10, rates: [{ max: 100, seconds: 3_600 }] }
  const left = () => redis.hget(capKeys.of('weather', 'shared', 'state'), 'left')
  await beginCap(redis, 'weather', SHARED_SCOPE, 0)
  const calls = ['a', 'b'].map((id) => ({ member: `account|${id}`, tag: 0 }))
  const answer = await takePermits(redis, 'weather', SHARED_SCOPE, caps, calls, { ids: [], meanMs: 0 }, 6_000)
  assert.ok(typeof answer === 'object')
  const tell = async (id: string, remaining: number) => {
    const toldUnder = answer.granted.get(`account|${id}`) ?? assert.fail()
    await tightenCap(redis, 'weather', SHARED_SCOPE, { left: { remaining, resetMs: 60_000 }, toldUnder })
    await releasePermits(redis, 'weather', SHARED_SCOPE, { ids: [toldUnder], meanMs: 1 })
  }
  await tell('b', 2)
  // The other may not have been counted yet.
  assert.equal(await left(), '1')
  await tell('a', 5)
  assert.equal(await left(), '1')
})

test("caps that operators change hold at once for calls with callers' own keys and without", async (t) => {
  const { redis, db } = await open(t)
  const api = (await loadCatalog(new Map())).get('code-host-user') ?? assert.fail()
  const desks = new PermitClients({ redis, db, log, grants: new GrantLedger(db, new RedisClock(redis, log), log) })
  for (const scope of [SHARED_SCOPE, 'key:1']) {
    applySettings(api, {})
    const current = () => (scope === SHARED_SCOPE ? api : withCallerKey(api))
    await beginCap(redis, api.slug, scope, 0)
    const { signal } = new AbortController()
    const acquire = (id: string) =>
      desks.of(current(), scope).acquire({ member: `account|${id}`, tag: 0 }, () => 60_000, signal)
    const permits = [await acquire('a')]
    applySettings(api, { caps: { concurrency: 2, rates: [{ max: 2, seconds: 3_600 }] } })
    permits.push(await acquire('b'))
    const third = acquire('c')
    await until(async () => (await redis.zcard(capKeys.of(api.slug, scope, 'waiters'))) === 1)
    applySettings(api, { caps: { concurrency: 3, rates: [{ max: 3, seconds: 3_600 }] } })
    desks.of(current(), scope)
    permits.push(await third)
    for (const permit of permits) permit.release(1)
    await until(async () => (await redis.zcard(capKeys.of(api.slug, scope, 'leases'))) === 0)
  }
})
