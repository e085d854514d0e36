import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rateLimitHeaders } from '../../src/admission/rate-limit-headers.ts'
import type { LimitState } from '../../src/limits/account-limits.ts'

const NOW = 1_800_000_000_000

const state: LimitState = {
  now: NOW,
  plan: { perMinute: 10, perMonth: 1_000, inFlight: 5 } as LimitState['plan'],
  minute: { used: 3, resetMs: 58_000 },
  month: { used: 40, resetMs: 100_000 },
  inFlight: 1,
  application: undefined,
}

test('the resets of RateLimit and X-RateLimit-Reset name the same instant however long a call waited', () => {
  for (const waitedMs of [0, 25_000, 58_000, 90_000]) {
    const headers = rateLimitHeaders(state, waitedMs)
    const [, minute, month] = /^"minute";r=7;t=(\d+), "month";r=960;t=(\d+)$/.exec(headers.ratelimit ?? '') ?? []
    assert.equal(Number(minute), Math.max(0, 58_000 - waitedMs) / 1_000)
    assert.equal(Number(month), (100_000 - waitedMs) / 1_000)
    assert.equal(Number(headers['x-ratelimit-reset']), (NOW + 58_000) / 1_000)
  }
})
