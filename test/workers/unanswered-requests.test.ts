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
      return unanswered.recordAbandoned(slug, patienceMs)
    }
    return { unanswered, leave }
  }

  it('when callers leave enough requests that had no answer for long enough, the worker wants a probe, and not again at once', () => {
    const { leave } = watch()
    const needed = Math.ceil(HANGING_MS / 300)
    for (let count = 1; count < needed; count += 1) assert.equal(leave('weather', 300), false, `${count}`)
    assert.equal(leave('weather', 300), true)
    assert.equal(leave('weather', 300), false)
  })

  it('a few requests whose callers left prove nothing, however long each waited', () => {
    const { leave } = watch()
    for (let count = 1; count < FAILURES_TO_OPEN; count += 1) assert.equal(leave('weather', 900), false)
    assert.equal(leave('weather', 900), true)
  })

  it('requests whose callers left prove nothing about an upstream that answers other requests meanwhile, and nothing about another upstream', () => {
    const { unanswered, leave } = watch()
    for (let count = 0; count < 50; count += 1) {
      assert.equal(leave('weather', 500), false)
      if (count % 4 === 3) unanswered.forget('weather')
    }
    const other = watch()
    for (let count = 0; count < FAILURES_TO_OPEN - 1; count += 1) {
      assert.equal(other.leave('weather', 600), false)
      assert.equal(other.leave('timezone', 600), false)
    }
  })
})
