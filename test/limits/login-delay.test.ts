import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { GatewayError } from '../../src/errors.ts'
import { delayFailures } from '../../src/limits/login-delay.ts'
import { createLog } from '../../src/log.ts'
import { keys } from '../../src/redis/keys.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

it('wrong passwords of one client for one account wait 1, 2, 4 seconds and up to a quarter of an hour, after five', async () => {
  const config = loadConfig({ ...testSecrets(), DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' })
  const log = createLog({ level: 'silent', pretty: false }, 'test')
  let now = 1_800_000_000_000
  /** @returns 0 when the password was looked at, else how long the attempt has to wait */
  const attempt = async (isRight = false): Promise<number> => {
    try {
      await delayFailures(
        { redis: redis, log, config, now: () => now },
        { email: 'a@example.com', address: '203.0.113.7' },
        async () => {
          if (!isRight) throw new GatewayError('INVALID_CREDENTIALS')
        },
      )
      return 0
    } catch (error) {
      assert.ok(error instanceof GatewayError)
      return error.code === 'INVALID_CREDENTIALS' ? 0 : (error.details.retryAfterMs ?? assert.fail('no time is told'))
    }
  }
  for (let count = 0; count < 5; count += 1) assert.equal(await attempt(), 0)
  const [key = assert.fail()] = await redis.keys(keys.loginFailures('*', '*').replace(/[{}]/g, '?'))
  const keptMs = await redis.pttl(key)
  assert.ok(keptMs > 3_540_000 && keptMs <= 3_600_000, `failures are remembered for ${keptMs} ms`)
  const waits: number[] = []
  for (let count = 0; count < 12; count += 1) {
    const waitMs = await attempt()
    waits.push(waitMs / 1_000)
    now += waitMs - 1
    assert.equal(await attempt(), 1, 'a millisecond too early')
    now += 1
    assert.equal(await attempt(), 0)
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
  assert.equal(await attempt(), 900_000)
  now -= 3_600_000
  assert.equal(await attempt(), 900_000)
  now += 900_000
  assert.equal(await attempt(true), 0, 'a clock that is set back lengthens no wait')
  assert.equal(await attempt(), 0, 'a good log-in forgets them')
})

it('a log-in that failed for want of a database leaves no count without an end beside one that went well', async () => {
  const config = loadConfig({ ...testSecrets(), DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' })
  const deps = { redis, log: createLog({ level: 'silent', pretty: false }, 'test'), config }
  const [going, failing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const logIn = (attempt: Promise<void>) =>
    delayFailures(deps, { email: 'b@example.com', address: '203.0.113.8' }, () => attempt)
  const [good, bad] = [logIn(going.promise), logIn(failing.promise)]
  await until(async () => (await redis.dbsize()) > 0)
  going.resolve()
  await good
  failing.reject(new GatewayError('DEPENDENCY_UNAVAILABLE'))
  await assert.rejects(bad)
  for (const key of await redis.keys(keys.loginFailures('*', '*').replace(/[{}]/g, '?')))
    assert.ok((await redis.pttl(key)) > 0, key)
})
