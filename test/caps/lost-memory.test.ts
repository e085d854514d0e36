import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, it, mock } from 'node:test'
import { Cap } from '../../src/caps/cap.ts'
import { BACKFILL_AFTER_MS, COLD_START_HOLD_MS } from '../../src/caps/timing.ts'
import { addCapGrants } from '../../src/db/cap-grants.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { memberOf } from '../../src/queue/wait-queue-entry.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { capKeys, keys } from '../../src/redis/keys.ts'
import { type Services, startServices } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'

let services: Services
let redis: RedisConnection
let db: Db
before(async () => {
  services = await startServices()
  const log = createLog({ level: 'silent', pretty: false }, 'test')
  redis = openRedis([services.redisUrl], 'blocking', log)
  db = openDatabase(services.databaseUrl, log)
})
after(async () => {
  await db.destroy()
  await closeRedis(redis)
  await services.stop()
})

/** A cap of ten requests in ten minutes, of which six were sent before Redis lost its memory. */
async function open(slug: string, { max = 10, sentBefore = 6 } = {}) {
  const lostAt = Date.now()
  const clock = { now: lostAt }
  await redis.set(keys.rememberedSince, lostAt)
  const minute = new Date(Math.floor(lostAt / 60_000) * 60_000)
  const sent = { slug, bucket: 'shared', minute }
  await addCapGrants(db, [
    { ...sent, worker: randomUUID(), granted: sentBefore - 2 },
    { ...sent, worker: randomUUID(), granted: 2 },
  ])
  const rules = { concurrency: 100, rates: [{ max, seconds: 600 }] }
  const cap = new Cap({ redis, db, now: () => clock.now }, { slug, bucket: 'shared' }, () => rules)
  const acquire = async () => {
    const waiters = Array.from({ length: 10 }, (_, index) => waiterOf(`account-${index}|call-${index}`, 0))
    const { granted } = await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
    return granted.size
  }
  return { lostAt, clock, cap, acquire }
}

it('a cap whose past Redis lost stays closed at first, and then grants what Postgres says is left of its window', async () => {
  const { lostAt, clock, acquire } = await open('lost')
  assert.equal(await acquire(), 0)
  clock.now = lostAt + BACKFILL_AFTER_MS + 1
  assert.equal(await acquire(), 0)
  for (const name of ['log', 'state'] as const) {
    const lifeMs = await redis.pttl(capKeys.of('lost', 'shared', name))
    assert.ok(lifeMs > 86_400_000, `${name} lives ${lifeMs} ms`)
  }
  clock.now = lostAt + COLD_START_HOLD_MS - 1
  assert.equal(await acquire(), 0)
  clock.now = lostAt + COLD_START_HOLD_MS
  assert.equal(await acquire(), 4)
})

it('a cap whose past Redis lost restores it for the calls that join its queue, which learn the true wait', async () => {
  const { lostAt, clock, cap } = await open('used up', { max: 110, sentBefore: 110 })
  const entry = { accountId: 'a', id: 'late', isAsync: false, weight: 1, slug: 'used up', bucket: 'shared' }
  const early = { ...entry, id: 'early' }
  const place = await cap.joinWaitQueue(early, clock.now + 120_000)
  assert.ok(!('reason' in place))
  assert.equal(place.etaMs, COLD_START_HOLD_MS)
  clock.now = lostAt + BACKFILL_AFTER_MS + 1
  const refusal = await cap.joinWaitQueue(entry, clock.now + 30_000)
  assert.ok('reason' in refusal)
  assert.equal(refusal.reason, 'cap')
  assert.ok(refusal.retryAfterMs > 540_000, `${refusal.retryAfterMs} ms`)
  // The call that is queued already gets the refusal as well.
  const waiters = [waiterOf(memberOf(early), place.tag)]
  const { refused } = await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  const eviction = refused.get(memberOf(early))
  assert.equal(eviction?.reason, 'cap')
  assert.ok(eviction.retryAfterMs > 540_000, `${eviction.retryAfterMs} ms`)
})

it("the past of a cap is restored by Redis' clock even if the worker's clock is behind or ahead", async (t) => {
  t.after(() => mock.timers.reset())
  for (const wrongByMs of [-1_200_000, 1_200_000]) {
    const { lostAt, clock, acquire } = await open(`clock ${wrongByMs}`)
    mock.timers.enable({ apis: ['Date'], now: lostAt + wrongByMs })
    assert.equal(await acquire(), 0)
    clock.now = lostAt + BACKFILL_AFTER_MS + 1
    assert.equal(await acquire(), 0)
    clock.now = lostAt + COLD_START_HOLD_MS
    assert.equal(await acquire(), 4, `a clock that is wrong by ${wrongByMs} ms`)
    mock.timers.reset()
  }
})

it('the end of a permit ends no other permit, although Redis lost its last writes and counts permits from an earlier number', async () => {
  const bucket = 'shared'
  await redis.set(keys.rememberedSince, 0)
  const rules = { concurrency: 8, rates: [{ max: 1_000, seconds: 10 }] }
  const open = () => new Cap({ redis, db }, { slug: 'rewound', bucket }, () => rules)
  const workers = [open(), open()] as const
  const acquire = async (cap: Cap, names: string[]) => {
    const waiters = names.map((name) => waiterOf(`account|${name}`))
    const { granted } = await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 60_000 })
    return names.map((name) => granted.get(`account|${name}`) ?? assert.fail(`${name} got no permit`))
  }
  await acquire(workers[0], ['first'])
  const state = capKeys.of('rewound', bucket, 'state')
  const permitsBefore = Number(await redis.hget(state, 'permits'))
  const before = await acquire(workers[0], ['a', 'b', 'c', 'd'])
  // Redis lost their writes, and their requests go on.
  await redis.hset(state, 'permits', permitsBefore)
  for (const name of ['log', 'leases'] as const) await redis.zrem(capKeys.of('rewound', bucket, name), ...before)
  await acquire(workers[0], ['e', 'f'])
  await acquire(workers[1], ['g', 'h'])
  const [a = '', b = '', c = '', d = ''] = before
  await workers[0].release({ ids: [a, b], meanMs: 1 })
  await workers[0].release({ ids: [c, d] })
  const { underWay, left } = await workers[0].read()
  assert.deepEqual({ underWay, left }, { underWay: 5, left: [995] })
})
