import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { FAILURES_TO_OPEN, HANGING_MS } from '../../src/health/health-thresholds.ts'
import { onHanging, UnansweredRequests } from '../../workers/upstream/hanging.ts'

for (const limitMs of [2_500, 3_000, 9_000]) {
  it(`an attempt that may take ${limitMs} ms counts as hanging from then on, not before`, (t) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    t.after(() => mock.timers.reset())
    let calls = 0
    onHanging({ firstMs: 2_500, limitMs: () => limitMs }, () => {
      calls += 1
    })
    for (let ms = 0; ms < limitMs - 1; ms += 1) mock.timers.tick(1)
    assert.equal(calls, 0)
    mock.timers.tick(1)
    assert.equal(calls, 1)
  })
}

describe('requests that callers do not wait for to the end', () => {
  const watch = () => {
    const clock = { ms: 0 }
    const unanswered = new UnansweredRequests(() => clock.ms)
    /** The caller leaves after so many milliseconds. @returns whether a probe was requested */
    const leave = (slug: string, patienceMs: number): boolean => {
      clock.ms += patienceMs
      return unanswered.abandoned(slug, patienceMs)
    }
    return { unanswered, leave }
  }

  it('requests that callers do not wait for to the end ask for a probe when enough of them had no answer for long enough, and not again at once', () => {
    const { leave } = watch()
    const needed = Math.ceil(HANGING_MS / 300)
    for (let count = 1; count < needed; count += 1) assert.equal(leave('weather', 300), false, `${count}`)
    assert.equal(leave('weather', 300), true)
    assert.equal(leave('weather', 300), false)
  })

  it('requests that callers do not wait for to the end prove nothing when they are few, however long each waited', () => {
    const { leave } = watch()
    for (let count = 1; count < FAILURES_TO_OPEN; count += 1) assert.equal(leave('weather', 900), false)
    assert.equal(leave('weather', 900), true)
  })

  it('requests that callers do not wait for to the end prove nothing of an upstream that answers others meanwhile, and nothing of another upstream', () => {
    const { unanswered, leave } = watch()
    for (let count = 0; count < 50; count += 1) {
      assert.equal(leave('weather', 500), false)
      if (count % 4 === 3) unanswered.end('weather')
    }
    const other = watch()
    for (let count = 0; count < FAILURES_TO_OPEN - 1; count += 1) {
      assert.equal(other.leave('weather', 600), false)
      assert.equal(other.leave('timezone', 600), false)
    }
  })
})
