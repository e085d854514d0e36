import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type ReplyHead, reachFields, reachOf } from '../../src/queue/reply-head.ts'
import {
  furthestReach,
  hasReached,
  type Reach,
  refundOf,
  shownStatusOf,
  type Verdict,
} from '../../src/queue/verdict.ts'

const ALL: Reach[] = ['refused', 'unsent', 'maybe-sent', 'sent', 'answered']

it('the reach of a call grows from a refusal to an answer, and of two values the further counts', () => {
  for (const [index, reach] of ALL.entries()) {
    for (const [other, least] of ALL.entries()) {
      assert.equal(hasReached(reach, least), index >= other)
      assert.equal(furthestReach(reach, least), ALL[Math.max(index, other)])
    }
  }
})

it('a call costs its account a unit of the month unless it failed on this side or at the upstream, and a refusal costs nothing', () => {
  const cost = (verdict: Verdict) => [shownStatusOf(verdict), refundOf(verdict)]
  assert.deepEqual(cost({ reach: 'answered' }), [200, 'nothing'])
  // A stored answer.
  assert.deepEqual(cost({ reach: 'unsent' }), [200, 'nothing'])
  assert.deepEqual(cost({ reach: 'answered', code: 'UPSTREAM_NOT_FOUND' }), [404, 'nothing'])
  assert.deepEqual(cost({ reach: 'answered', code: 'UPSTREAM_ERROR' }), [502, 'month'])
  assert.deepEqual(cost({ reach: 'unsent', code: 'UPSTREAM_CAP_EXHAUSTED' }), [503, 'month'])
  assert.deepEqual(cost({ reach: 'refused', code: 'UPSTREAM_CAP_EXHAUSTED' }), [503, 'all'])
  assert.deepEqual(cost({ reach: 'refused', code: 'RATE_LIMIT_EXCEEDED' }), [429, 'all'])
  // The caller left. The account pays if a request may have been sent for it.
  assert.deepEqual(cost({ reach: 'unsent', code: 'CALL_CANCELLED' }), [499, 'month'])
  for (const reach of ['maybe-sent', 'sent', 'answered'] as const)
    assert.deepEqual(cost({ reach, code: 'CALL_CANCELLED' }), [499, 'nothing'])
})

it('a reply of the earlier version says how far its call got, and that version reads it in replies of this version', () => {
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const before = (head: Partial<ReplyHead>) => reachOf({ times, ...head })
  assert.equal(before({}), 'unsent')
  assert.equal(before({ isRefused: true }), 'refused')
  assert.equal(before({ wasSent: true }), 'maybe-sent')
  assert.equal(before({ times: { ...times, attempts: 1 } }), 'maybe-sent')
  for (const reach of ALL) {
    const { reach: _reach, ...fields } = reachFields(reach)
    assert.equal(reachOf({ times, ...reachFields(reach) }), reach)
    assert.equal(before(fields), hasReached(reach, 'maybe-sent') ? 'maybe-sent' : reach)
  }
})
