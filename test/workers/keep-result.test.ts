import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnswerableCall } from '../../src/queue/call-job.ts'
import type { ReplyHead } from '../../src/queue/reply-head.ts'
import { readResult } from '../../src/queue/results.ts'
import { MemoryHeadroom } from '../../src/redis/memory-headroom.ts'
import { keepResult } from '../../workers/jobs/keep-result.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const deps = { redis, headroom: new MemoryHeadroom(redis) }
const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }

/** The part of a call's result that is kept if its account has so many bytes for its results. */
async function keep(id: string, bytesMax: number, outcome: Partial<ReplyHead>, text = ''): Promise<ReplyHead> {
  const call = { id, accountId: 'account', isAsync: true, resultBytesMax: bytesMax } as AnswerableCall
  const { head } = await keepResult(deps, call, { head: { id, times, ...outcome }, body: Buffer.from(text) })
  assert.deepEqual((await readResult(redis, call))?.head, head)
  return head
}

test('an outcome without a body is kept unchanged even if the results of its account use all their room', async () => {
  assert.equal((await keep('call-1', 4_000, {}, 'x'.repeat(1_000))).code, undefined)
  const refused = await keep('call-2', 4_000, {}, 'x'.repeat(1_000))
  assert.equal(refused.code, 'RESULT_STORAGE_FULL')
  assert.ok(Number(refused.retryAfterMs) > 0)
  const failed = await keep('call-3', 4_000, { code: 'UPSTREAM_ERROR', cause: 'HTTP 500' })
  assert.deepEqual([failed.code, failed.cause], ['UPSTREAM_ERROR', 'HTTP 500'])
})
