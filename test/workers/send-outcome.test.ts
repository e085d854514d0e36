import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { GatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { ReplyAddress } from '../../src/queue/reply.ts'
import { NO_TIMES, type Reply, reachOf } from '../../src/queue/reply-head.ts'
import { hasReached } from '../../src/queue/verdict.ts'
import { refusedAttempt } from '../../workers/errors/attempt-error.ts'
import { processCall } from '../../workers/jobs/process-job.ts'
import { OtherDocumentError, replyToLostCall, sendOutcome } from '../../workers/jobs/send-outcome.ts'
import { attemptFailure } from '../../workers/upstream/outcome.ts'
import { OWN_FOLDER, SHOP_KEY } from '../support/shop.ts'
import { waiterOf } from '../support/waiter.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

test('the reply to a call whose first worker was lost says that a request may have been sent, however the call ends', async (t) => {
  const { deps, replies, endpoint, callOf } = await openWorkerParts(t)
  const signal = new AbortController().signal
  const replyTo = async (run: (call: ReturnType<typeof callOf>) => Promise<unknown>) => {
    const call = callOf({ replyTo: replies.stream })
    const { reply } = replies.awaitReply(call.id)
    await run(call)
    const { head } = await reply
    return { code: head.code, mayBeSent: hasReached(reachOf(head), 'maybe-sent') }
  }
  const runLeft = (isSecondRun: boolean) =>
    replyTo(async (call) => {
      deps.running.cancel(call.id)
      await processCall(deps, { call, lane: 'calls', isSecondRun }, signal)
    })
  assert.deepEqual(await runLeft(false), { code: 'CALL_CANCELLED', mayBeSent: false })
  assert.deepEqual(await runLeft(true), { code: 'CALL_CANCELLED', mayBeSent: true })
  assert.deepEqual(
    await replyTo((call) => replyToLostCall(deps, call, { cause: new Error('lost'), isSecondRun: true })),
    {
      code: 'DEPENDENCY_UNAVAILABLE',
      mayBeSent: true,
    },
  )
  const entry = { storedAt: deps.clock.now(), freshMs: 60_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
  const key = cacheKeys(endpoint, callOf())?.answer ?? assert.fail()
  const origin = { slug: 'encyclopedia', hasUndeclared: false, owner: 'account' }
  // Too large to travel with its reply. If the room is full, there is none for it.
  const body = Buffer.from(JSON.stringify('x'.repeat(70_000)))
  await deps.cache.store(origin, key, { ...entry, body })
  assert.deepEqual(await replyTo((call) => processCall(deps, { call, lane: 'calls', isSecondRun: true }, signal)), {
    code: undefined,
    mayBeSent: true,
  })
  const send = deps.replies.send.bind(deps.replies)
  t.mock.method(deps.replies, 'send', async (address: ReplyAddress, reply: Reply) => {
    if (reply.body.length > 0) throw new GatewayError('OVERLOADED')
    await send(address, reply)
  })
  assert.deepEqual(await replyTo((call) => processCall(deps, { call, lane: 'calls', isSecondRun: true }, signal)), {
    code: 'OVERLOADED',
    mayBeSent: true,
  })
})

test('a write whose first worker was lost is OUTCOME_UNKNOWN, even if the second run is too late or has another document', async (t) => {
  const { deps, replies, callOf } = await openWorkerParts(t, {
    UPSTREAMS_DIR: OWN_FOLDER,
    UPSTREAM_ORDERS_KEY: SHOP_KEY,
  })
  const codeOf = async (timeMs: number, run: (call: CallJob) => Promise<unknown>) => {
    const call = callOf({ slug: 'orders', endpoint: '/create-order', parameters: {}, timeMs })
    const { reply } = replies.awaitReply(call.id)
    await run(call)
    return (await reply).head.code
  }
  const signal = new AbortController().signal
  const cause = new OtherDocumentError('another document')
  const codes = async (isSecondRun: boolean) => [
    await codeOf(-1, (call) => processCall(deps, { call, lane: 'calls', isSecondRun }, signal)),
    await codeOf(30_000, (call) => replyToLostCall(deps, call, { cause, isSecondRun })),
  ]
  assert.deepEqual(await codes(false), ['DEADLINE_EXCEEDED', 'API_NOT_ENABLED'])
  assert.deepEqual(await codes(true), ['OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN'])
})

test('a call whose first worker was lost is not refused even if it then gets no permit, because a request may have been sent', async (t) => {
  const { deps, replies, api, cap, callOf } = await openWorkerParts(t)
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const waiters = [waiterOf('other|sent', 0)]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  const ticket = { tag: 0.5, weight: 1 }
  for (const { isSecondRun, fields } of [
    { isSecondRun: false, fields: {} },
    { isSecondRun: true, fields: {} },
    { isSecondRun: true, fields: { ticket } },
  ]) {
    const call = callOf({ replyTo: replies.stream, ...fields })
    const { reply } = replies.awaitReply(call.id)
    await processCall(deps, { call, lane: 'calls', isSecondRun }, new AbortController().signal)
    const { code, reach } = (await reply).head
    assert.deepEqual([code, reach], ['UPSTREAM_CAP_EXHAUSTED', isSecondRun ? 'maybe-sent' : 'refused'])
  }
})

test('a call counts as queued from the end of its admission, or from its limits if its node is of an earlier version', async (t) => {
  const { deps, replies, callOf } = await openWorkerParts(t)
  const queueMsOf = async (fields: Partial<CallJob>) => {
    const call = callOf({ replyTo: replies.stream, limitsAcquiredAt: Math.floor(deps.clock.now()) - 60_000, ...fields })
    const { reply } = replies.awaitReply(call.id)
    deps.running.cancel(call.id)
    await processCall(deps, { call, lane: 'calls', isSecondRun: false }, new AbortController().signal)
    return (await reply).head.times.queueMs
  }
  assert.ok((await queueMsOf({ admissionEndedAt: Math.ceil(deps.clock.now()) })) < 30_000)
  assert.ok((await queueMsOf({})) >= 60_000)
})

test('the reply to a call that was refused because the source is down says why the source is down', async (t) => {
  const { deps, replies, callOf } = await openWorkerParts(t)
  const call = callOf({ replyTo: replies.stream })
  const { reply } = replies.awaitReply(call.id)
  const outcome = attemptFailure(
    refusedAttempt({ reason: 'down', retryAfterMs: 1_000, lastFailure: { words: 'HTTP 500 in 87 ms' } }),
  )
  await sendOutcome(deps, call, { outcome, times: NO_TIMES, reach: 'unsent' })
  const { code, message, cause } = (await reply).head
  assert.deepEqual(
    [code, message, cause],
    ['UPSTREAM_UNAVAILABLE', 'The upstream API is down (HTTP 500 in 87 ms).', 'HTTP 500 in 87 ms'],
  )
})
