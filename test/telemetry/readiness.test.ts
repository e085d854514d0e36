import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { Readiness } from '../../src/telemetry/readiness.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { type Services, startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

let services: Services
let db: Db
before(async () => {
  services = await startServices()
  db = openDatabase(services.databaseUrl, log)
})
after(async () => {
  await db.destroy()
  await services.stop()
})

const AWAY = { status: 'unavailable', postgres: true, redis: false, problems: [] }

/** Runs work that must be over long before a probe of Kubernetes gives up. */
async function soon<T>(work: Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const value = await work
  assert.ok(performance.now() - startedAt < 5_000, `${performance.now() - startedAt} ms`)
  return value
}

describe('the readiness of a process', () => {
  for (const kind of ['producer', 'blocking'] as const) {
    it(`the readiness of a process with a ${kind} connection reports that Redis is unreachable, and queues no command for it`, async (t) => {
      const { redis, proxy } = await connectThroughProxy(t, services.redisUrl, kind)
      const readiness = new Readiness({ db, redis })
      assert.equal((await readiness.check()).status, 'ready')
      proxy.cut()
      await until(() => redis.status !== 'ready')
      for (let time = 0; time < 5; time += 1) assert.deepEqual(await soon(readiness.check()), AWAY)
      assert.equal((Reflect.get(redis, 'offlineQueue') as { length: number }).length, 0)
      proxy.heal()
      await until(async () => (await readiness.check()).status === 'ready')
    })
  }

  it('the readiness of a process whose Redis is connected and silent is answered in time, and asks Redis once', async (t) => {
    const { redis, proxy } = await connectThroughProxy(t, services.redisUrl, 'blocking')
    const readiness = new Readiness({ db, redis })
    await readiness.check()
    proxy.blackHole()
    const reports = await soon(Promise.all(Array.from({ length: 5 }, () => readiness.check())))
    for (const report of reports) assert.deepEqual(report, AWAY)
    assert.equal((redis as Redis).commandQueue.length, 1)
    proxy.heal()
    await until(async () => (await readiness.check()).status === 'ready')
  })

  it('the readiness of a process names the command, key or channel that Redis refuses to its user, and neither user nor key', async (t) => {
    const admin = new Redis(services.redisUrl)
    t.after(() => admin.disconnect())
    const rights = ['on', '>secret-of-the-test', '+@all', '~agw:*', '&agw:*']
    await admin.call('ACL', 'SETUSER', 'poor', 'reset', ...rights, '-info', '-eval')
    const url = new URL(services.redisUrl)
    url.username = 'poor'
    url.password = 'secret-of-the-test'
    const redis = openRedis([url.href], 'producer', log)
    t.after(() => closeRedis(redis))
    const readiness = new Readiness({ db, redis })
    await until(() => redis.status === 'ready')
    await assert.rejects(redis.eval('return 1', 0))
    await assert.rejects(redis.set('other', '1'))
    await assert.rejects(redis.publish('other', '1'))
    const { status, problems } = await readiness.check()
    assert.equal(status, 'unavailable')
    const listed = 'grant what deploy/redis.acl lists'
    assert.deepEqual(problems.sort(), [
      `Redis refuses a channel of the command PUBLISH to this user: ${listed}`,
      `Redis refuses a key of the command SET to this user: ${listed}`,
      `Redis refuses the command EVAL to this user: ${listed}`,
      `Redis refuses the command INFO to this user: ${listed}`,
    ])
  })
})
