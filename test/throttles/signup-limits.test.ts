import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { type ErrorCode, GatewayError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { publicNetworkOf } from '../../src/throttles/client-network.ts'
import { limitSignups } from '../../src/throttles/signup-limits.ts'
import { testSecrets } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

it('sign-ups count for their network if an account was created or existed already, and not if an outage makes them fail', async () => {
  const config = loadConfig({
    ...testSecrets(),
    ...{ DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' },
    ...{ SIGNUP_PER_MINUTE: '9', SIGNUP_PER_HOUR: '4', SIGNUP_PER_DAY: '2' },
  })
  const deps = { redis, log: createLog({ level: 'silent', pretty: false }, 'test'), config }
  const signUp = (failure?: ErrorCode) =>
    limitSignups(deps, { address: '192.0.2.7', network: '192.0.2.7' }, async () => {
      if (failure) throw new GatewayError(failure)
    }).then(
      () => 'made',
      (error: GatewayError) => error.code,
    )
  for (let count = 0; count < 10; count += 1)
    assert.equal(await signUp('DEPENDENCY_UNAVAILABLE'), 'DEPENDENCY_UNAVAILABLE')
  assert.equal(await signUp(), 'made')
  assert.equal(await signUp('EMAIL_IN_USE'), 'EMAIL_IN_USE')
  for (let count = 0; count < 10; count += 1) assert.equal(await signUp(), 'SIGNUP_THROTTLED')
  // If the limit of the day refuses, the hour and the minute lose nothing.
  const wider = { ...deps, config: { ...config, throttles: { ...config.throttles, signupPerDay: 9 } } }
  await limitSignups(wider, { address: '192.0.2.7', network: '192.0.2.7' }, async () => undefined)
})

it('a refused sign-up may come again when no limit refuses it, although the limit of the minute refuses it first', async () => {
  const config = loadConfig({
    ...testSecrets(),
    ...{ DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' },
    ...{ SIGNUP_PER_MINUTE: '1', SIGNUP_PER_HOUR: '1', SIGNUP_PER_DAY: '9' },
  })
  let now = Date.parse('2026-11-28T12:00:00Z')
  const deps = { redis, log: createLog({ level: 'silent', pretty: false }, 'test'), config, now: () => now }
  const signUp = () => limitSignups(deps, { address: '192.0.2.8', network: '192.0.2.8' }, async () => undefined)
  await signUp()
  now += 10_000
  await assert.rejects(signUp(), (error) => {
    assert.ok(error instanceof GatewayError)
    assert.equal(error.details.retryAfterMs, 3_590_000)
    return true
  })
  now += 3_590_000
  await signUp()
})

it('sign-ups are bounded for each size of network: an IPv6 /64, four times as many for a /48, twenty times for a /32, and eight times for an IPv4 /24', async () => {
  const config = loadConfig({
    ...testSecrets(),
    ...{ DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' },
    ...{ SIGNUP_PER_MINUTE: '0', SIGNUP_PER_HOUR: '1', SIGNUP_PER_DAY: '0' },
  })
  const deps = { redis, log: createLog({ level: 'silent', pretty: false }, 'test'), config }
  const madeFrom = async (addresses: string[]): Promise<number> => {
    let made = 0
    for (const address of addresses) {
      const network = publicNetworkOf(address) ?? null
      await limitSignups(deps, { address, network }, async () => {
        made += 1
      }).catch((error: GatewayError) => assert.equal(error.code, 'SIGNUP_THROTTLED'))
    }
    return made
  }
  const addresses = (pattern: (index: string) => string) =>
    Array.from({ length: 30 }, (_, i) => pattern(i.toString(16)))
  assert.equal(await madeFrom(addresses((i) => `2001:4860:1:1::${i}`)), 1)
  assert.equal(await madeFrom(addresses((i) => `2001:4860:2:1${i.padStart(2, '0')}::1`)), 1)
  assert.equal(await madeFrom(addresses((i) => `2001:4860:3:${i}00::1`)), 4)
  assert.equal(await madeFrom(addresses((i) => `2001:4861:${i}::1`)), 20)
  assert.equal(await madeFrom(addresses((i) => `203.0.113.${Number.parseInt(i, 16)}`)), 8)
  // One IPv4 address in several spellings.
  const spellings = [
    '198.51.100.7',
    '::ffff:198.51.100.7',
    '64:ff9b::198.51.100.7',
    '2002:c633:6407::1',
    '2002:c633:6407:99::1',
  ]
  assert.equal(await madeFrom(spellings), 1)
})
