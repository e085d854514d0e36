import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { type ErrorCode, GatewayError } from '../../src/errors.ts'
import { limitSignups } from '../../src/limits/signup-limits.ts'
import { createLog } from '../../src/log.ts'
import { testSecrets } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

it('sign-ups count for their network when an account is made or was there, and not when they fail for an outage', async () => {
  const config = loadConfig({
    ...testSecrets(),
    ...{ DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', PORT: '0' },
    ...{ SIGNUP_PER_MINUTE: '9', SIGNUP_PER_HOUR: '4', SIGNUP_PER_DAY: '2' },
  })
  const deps = { redis, log: createLog({ level: 'silent', pretty: false }, 'test'), config }
  const signUp = (failure?: ErrorCode) =>
    limitSignups(deps, { address: '192.0.2.7', network: '192.0.2.0/24' }, async () => {
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
  // What the bound of the day refused has taken nothing of the hour and the minute.
  const wider = { ...deps, config: { ...config, throttles: { ...config.throttles, signupPerDay: 9 } } }
  await limitSignups(wider, { address: '192.0.2.7', network: '192.0.2.0/24' }, async () => undefined)
})
