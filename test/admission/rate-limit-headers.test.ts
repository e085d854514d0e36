import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rateLimitHeaders } from '../../src/admission/rate-limit-headers.ts'
import type { LimitState } from '../../src/limits/limit-state.ts'

const NOW = 1_800_000_000_000

const state: LimitState = {
  now: NOW,
  plan: { perMinute: 10, perMonth: 1_000, inFlight: 5 } as LimitState['plan'],
  minute: { used: 3, resetMs: 58_000 },
  month: { used: 40, resetMs: 100_000 },
  inFlight: 1,
  waitMs: 0,
  credential: undefined,
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

test('the limits of a key stand beside the limits of the plan, and the older headers show the tighter minute', () => {
  const credential = {
    minute: { used: 4, max: 5, resetMs: 30_000 },
    month: { used: 10, max: 50 },
    inFlight: { used: 1, max: 2 },
  }
  const headers = rateLimitHeaders({ ...state, credential })
  assert.match(headers.ratelimit ?? '', /, "credential-minute";r=1;t=30, "credential-month";r=40;t=100$/)
  const policy = '"credential-minute";q=5;w=60, "credential-month";q=50, "in-flight";q=5;qu="concurrent-requests", '
  assert.ok(headers['ratelimit-policy']?.endsWith(`${policy}"credential-in-flight";q=2;qu="concurrent-requests"`))
  const older = ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`])
  assert.deepEqual(older, ['5', '1', String((NOW + 30_000) / 1_000)])
})
