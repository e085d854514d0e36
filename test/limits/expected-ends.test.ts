import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { ExpectedEnds } from '../../src/limits/expected-ends.ts'
import { limitRefusal } from '../../src/limits/limit-refusal.ts'

const USUAL: Record<string, number> = { weather: 400, 'sports-scores': 6_000 }
const ANN = { accountId: 'ann', mode: 'live' } as const

function openEnds() {
  let now = 0
  const ends = new ExpectedEnds(
    (slug) => USUAL[slug],
    () => now,
  )
  const begin = (id: string, slug: string, { etaMs = 0, isAsync = false, timeMs = 30_000 } = {}) =>
    ends.begin({ ...ANN, id, slug, isAsync, limitsAcquiredAt: 0, deadline: timeMs }, etaMs)
  return {
    ends,
    begin,
    pass: (ms: number) => {
      now += ms
    },
  }
}

it('the next end of an account is that of the call whose forecast wait and usual time are over first', () => {
  const { ends, begin, pass } = openEnds()
  assert.equal(ends.nextMs(ANN), undefined)
  const endSlow = begin('a', 'sports-scores')
  const endQueued = begin('b', 'weather', { etaMs: 9_000 })
  assert.equal(ends.nextMs(ANN), 6_000)
  pass(2_000)
  assert.equal(ends.nextMs(ANN), 4_000)
  endSlow()
  assert.equal(ends.nextMs(ANN), 7_400)
  assert.equal(ends.nextMs({ ...ANN, mode: 'test' }), undefined)
  endQueued()
  assert.equal(ends.nextMs(ANN), undefined)
})

it('a call is expected to end by its deadline, one of an unknown upstream after a second, and a late one any moment', () => {
  const { ends, begin, pass } = openEnds()
  begin('a', 'sports-scores', { etaMs: 60_000, timeMs: 30_000 })
  assert.equal(ends.nextMs(ANN), 30_000)
  begin('b', 'trivia')
  assert.equal(ends.nextMs(ANN), 1_000)
  pass(5_000)
  assert.equal(ends.nextMs(ANN), 0)
})

it('an asynchronous call that goes on without its caller is forgotten when it should have ended', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const { ends, begin } = openEnds()
  begin('a', 'sports-scores', { isAsync: true })(true)
  assert.equal(ends.nextMs(ANN), 6_000)
  mock.timers.tick(6_000)
  assert.equal(ends.nextMs(ANN), undefined)
})

it('a refusal by the calls in flight quotes the next end, and at least a second', () => {
  const plan = { perMinute: 10, perMonth: 100, inFlight: 5 }
  const state = { now: 0, plan, minute: { used: 5, resetMs: 0 }, month: undefined, inFlight: 5, credential: undefined }
  const subject = { ...ANN, version: '1' }
  const refusal = (nextEndMs?: number) =>
    limitRefusal('in-flight', state, { tier: 'developer', subject, nextEndMs: () => nextEndMs }).details.retryAfterMs
  assert.deepEqual([refusal(4_200), refusal(10), refusal()], [4_200, 1_000, 1_000])
})
