import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TokenBuckets } from '../../src/throttles/token-buckets.ts'

describe('a token bucket', () => {
  it('a token bucket gives its burst at once and then its rate a second, separately for each subject', () => {
    let now = 0
    const buckets = new TokenBuckets({ perSecond: 2, burst: 3, now: () => now })
    assert.deepEqual(
      Array.from({ length: 4 }, () => buckets.take('a')),
      [0, 0, 0, 500],
    )
    assert.equal(buckets.take('b'), 0)
    now = 250
    assert.equal(buckets.take('a'), 250)
    now = 500
    assert.deepEqual([buckets.take('a'), buckets.take('a')], [0, 500])
    now = 1_000_000
    assert.deepEqual(
      Array.from({ length: 4 }, () => buckets.take('a')),
      [0, 0, 0, 500],
    )
  })

  it('a token bucket does not fill while one turn of the event loop goes on, however long its work takes', async () => {
    const buckets = new TokenBuckets({ perSecond: 1_000, burst: 1 })
    assert.equal(buckets.take('a'), 0)
    const startedAt = performance.now()
    while (performance.now() < startedAt + 5);
    assert.equal(buckets.take('a'), 1)
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(buckets.take('a'), 0)
  })

  it('a token can be returned to a token bucket, which never holds more than its burst', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1, now: () => 0 })
    buckets.refund('a')
    assert.deepEqual([buckets.take('a'), buckets.take('a')], [0, 1_000])
    buckets.refund('a')
    assert.equal(buckets.take('a'), 0)
  })

  it('a token bucket gives several tokens together, or none of them', () => {
    let now = 0
    const buckets = new TokenBuckets({ perSecond: 2, burst: 3, now: () => now })
    assert.deepEqual([buckets.take('a', 2), buckets.take('a', 2), buckets.take('a')], [0, 500, 0])
    now = 500
    assert.equal(buckets.take('a', 2), 500)
  })

  it('a token bucket that never holds as many tokens gives all it can hold', () => {
    let now = 0
    const buckets = new TokenBuckets({ perSecond: 2, burst: 3, now: () => now })
    assert.deepEqual([buckets.take('a', 10), buckets.take('a', 10), buckets.take('a')], [0, 1_500, 500])
    now = 1_500
    assert.equal(buckets.take('a', 10), 0)
  })

  it('a token bucket without a bound always gives a token', () => {
    const buckets = new TokenBuckets({ perSecond: 0, burst: 0 })
    for (let count = 0; count < 10; count += 1) assert.equal(buckets.take('a'), 0)
  })
})
