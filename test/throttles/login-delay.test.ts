import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { GatewayError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { keys } from '../../src/redis/keys.ts'
import { limitGuesses } from '../../src/throttles/login-delay.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const config = loadConfig({ ...testSecrets(), DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' })
const FAILURES = keys.throttle('login-failures', '*').replace(/[{}]/g, '?')
const log = createLog({ level: 'silent', pretty: false }, 'test')

it('wrong passwords of one client for one account wait 1, 2, 4 seconds and up to a quarter of an hour, after five', async () => {
  let now = 1_800_000_000_000
  /** @returns 0 if the password was checked, otherwise how long the attempt has to wait */
  const attempt = async (isRight = false): Promise<number> => {
    try {
      await limitGuesses(
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
  const [key = assert.fail()] = await redis.keys(FAILURES)
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
  now += 3_599_999
  assert.equal(await attempt(), 0)
  assert.equal(await attempt(), 900_000, 'all failures count until an hour after the last')
  now -= 3_600_000
  assert.equal(await attempt(), 900_000)
  now += 900_000
  assert.equal(await attempt(true), 0, 'a clock that is set back lengthens no wait')
  assert.equal(await attempt(), 0, 'a good log-in forgets them')
})

it('a log-in that failed because the database is unreachable leaves no count without an end beside a log-in that succeeded', async () => {
  const deps = { redis, log, config }
  const [going, failing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const logIn = (attempt: Promise<void>) =>
    limitGuesses(deps, { email: 'b@example.com', address: '203.0.113.8' }, () => attempt)
  const [good, bad] = [logIn(going.promise), logIn(failing.promise)]
  await until(async () => (await redis.dbsize()) > 0)
  going.resolve()
  await good
  failing.reject(new GatewayError('DEPENDENCY_UNAVAILABLE'))
  await assert.rejects(bad)
  for (const key of await redis.keys(FAILURES)) assert.ok((await redis.pttl(key)) > 0, key)
})

const failureKeys = async () => (await redis.keys(FAILURES)).sort()

it('log-ins that the throttle of their client refuses leave nothing in Redis, whatever address they name', async () => {
  const few = { ...config, throttles: { ...config.throttles, loginFailuresPerMinute: 3 } }
  const guess = (email: string, code: 'INVALID_CREDENTIALS' | 'DEPENDENCY_UNAVAILABLE') =>
    limitGuesses({ redis, log, config: few }, { email, address: '203.0.113.9' }, async () => {
      throw new GatewayError(code)
    })
  const before = await failureKeys()
  await assert.rejects(guess('outage@example.com', 'DEPENDENCY_UNAVAILABLE'), { code: 'DEPENDENCY_UNAVAILABLE' })
  await until(async () => (await failureKeys()).length === before.length)
  for (let count = 0; count < 3; count += 1)
    await assert.rejects(guess(`${count}@example.com`, 'INVALID_CREDENTIALS'), { code: 'INVALID_CREDENTIALS' })
  const wrong = await failureKeys()
  assert.equal(wrong.length, before.length + 3)
  for (let count = 3; count < 6; count += 1)
    await assert.rejects(guess(`${count}@example.com`, 'INVALID_CREDENTIALS'), { code: 'LOGIN_THROTTLED' })
  assert.deepEqual(await failureKeys(), wrong)
})

it('log-ins that wait for their account, and successful log-ins, do not count for the throttle of their client', async () => {
  const few = { ...config, throttles: { ...config.throttles, loginFailuresPerMinute: 6 } }
  const attempt = (email: string, isRight: boolean) =>
    limitGuesses({ redis, log, config: few }, { email, address: '203.0.113.10' }, async () => {
      if (!isRight) throw new GatewayError('INVALID_CREDENTIALS')
    })
  for (let count = 0; count < 5; count += 1)
    await assert.rejects(attempt('c@example.com', false), { code: 'INVALID_CREDENTIALS' })
  for (let count = 0; count < 3; count += 1)
    await assert.rejects(attempt('C@example.com', true), { code: 'LOGIN_THROTTLED' })
  for (let count = 0; count < 3; count += 1) await attempt('d@example.com', true)
  await assert.rejects(attempt('d@example.com', false), { code: 'INVALID_CREDENTIALS' })
  // Now six attempts have failed, so the client itself waits.
  await assert.rejects(attempt('d@example.com', true), { code: 'LOGIN_THROTTLED' })
})

it('wrong passwords from all subnets of an IPv6 /48 are checked as often as wrong passwords of four clients, for an account and for all', async () => {
  const checked = async (subnets: number, emailOf: (subnet: number) => string): Promise<number> => {
    let count = 0
    for (let subnet = 0; subnet < subnets; subnet += 1) {
      const guess = { email: emailOf(subnet), address: `2001:4860:7:${subnet.toString(16)}::1` }
      await assert.rejects(
        limitGuesses({ redis, log, config, now: () => 1_800_000_000_000 }, guess, async () => {
          count += 1
          throw new GatewayError('INVALID_CREDENTIALS')
        }),
      )
    }
    return count
  }
  assert.equal(await checked(40, () => 'c@example.com'), 20)
  // All accounts of a client have 30 a minute, of which those above are 20 already.
  assert.equal(await checked(150, (subnet) => `someone-${subnet}@example.com`), 100)
  const elsewhere = { email: 'c@example.com', address: '2001:4860:8::1' }
  await limitGuesses({ redis, log, config }, elsewhere, async () => undefined)
})
