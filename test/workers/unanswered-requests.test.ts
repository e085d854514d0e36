import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FAILURES_TO_OPEN, HANGING_MS } from '../../src/health/health-thresholds.ts'
import { UnansweredRequests } from '../../workers/upstream/unanswered-requests.ts'

describe('requests that callers do not wait for to the end', () => {
  const watch = () => {
    const clock = { ms: 0 }
    const unanswered = new UnansweredRequests(() => clock.ms)
    /**
     * The caller leaves after so many milliseconds.
     * @returns whether a probe was requested
     */
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
