import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { it, type TestContext } from 'node:test'
import timers from 'node:timers/promises'
import { AttemptError } from '../../workers/errors/attempt-error.ts'
import { withRetries } from '../../workers/upstream/retry.ts'

/**
 * Pauses of a call whose every attempt fails, milliseconds, where `random` is what the system
 * draws.
 */
async function pausesOf(t: TestContext, random: number): Promise<number[]> {
  const pauses: number[] = []
  t.mock.method(Math, 'random', () => random)
  const delay = t.mock.method(timers, 'setTimeout', async (ms: number) => void pauses.push(ms))
  syncBuiltinESMExports()
  const attempts = withRetries(() => Promise.reject(new AttemptError('UPSTREAM_ERROR', { isRetryable: true })), {
    mayRepeat: () => true,
    budget: { calls: 0, retries: 0 },
    retryMsMin: 0,
    remainingMs: () => 60_000,
    signal: new AbortController().signal,
  })
  await assert.rejects(attempts, AttemptError)
  delay.mock.restore()
  syncBuiltinESMExports()
  return pauses
}

it('the pause before a repeat is a random time from 0 to a bound that doubles', async (t) => {
  assert.deepEqual(await pausesOf(t, 0), [])
  assert.deepEqual(await pausesOf(t, 0.5), [100, 200])
  assert.deepEqual(await pausesOf(t, 0.999_99), [200, 400])
})

it('a request that may not be sent twice is repeated until it was sent', async () => {
  let tries = 0
  const attempts = withRetries(
    () => {
      tries += 1
      return Promise.reject(new AttemptError('UPSTREAM_ERROR', { isRetryable: true }))
    },
    {
      mayRepeat: () => tries < 2,
      budget: { calls: 0, retries: 0 },
      retryMsMin: 0,
      remainingMs: () => 60_000,
      signal: new AbortController().signal,
    },
  )
  await assert.rejects(attempts, AttemptError)
  assert.equal(tries, 2)
})
