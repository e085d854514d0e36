import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { AnswerMemory, MemoryShare } from '../../workers/upstream/answer-memory.ts'

/** Gives back what `run` took when it ends. */
async function within(memory: AnswerMemory, run: (share: MemoryShare) => Promise<void>): Promise<void> {
  const share = new MemoryShare(memory)
  await run(share).finally(() => share.giveBack())
}

/** A call that takes each of `bytes` after the other, and holds them until it ends. */
function startCall(memory: AnswerMemory, bytes: number[], signal = new AbortController().signal) {
  const end = Promise.withResolvers<void>()
  let taken = 0
  const ended = within(memory, async (share) => {
    for (const each of bytes) {
      await share.take(each, signal)
      taken += each
    }
    await end.promise
  })
  return {
    taken: () => taken,
    end: async () => {
      end.resolve()
      await ended
      await settle()
    },
    ended,
    fail: end.reject,
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

test('the answer that began first is read to its end, and later answers are read as far as their memory goes', async () => {
  const memory = new AnswerMemory(100)
  const [first, second, third] = [[60, 900], [60, 30], [60]].map((bytes) => startCall(memory, bytes))
  assert.ok(first && second && third)
  await settle()
  assert.deepEqual([first.taken(), second.taken(), third.taken()], [960, 90, 0])
  await first.end()
  // The bytes of the second call no longer count, because it is the first call now.
  assert.equal(third.taken(), 60)
  await second.end()
  await third.end()
})

test('answers that hold memory and wait for more are read to their ends, one after the other', async () => {
  const memory = new AnswerMemory(100)
  const calls = Array.from({ length: 5 }, () => startCall(memory, [30, 90]))
  for (const [index, call] of calls.entries()) {
    await settle()
    assert.equal(call.taken(), 120, `call ${index}`)
    await call.end()
  }
})

test('a further part of a waiting answer is counted with the answer and waits no longer than it', async () => {
  const memory = new AnswerMemory(100)
  const first = startCall(memory, [10])
  const holding = startCall(memory, [40])
  await settle()
  const { signal } = new AbortController()
  const end = Promise.withResolvers<void>()
  const ended = within(memory, async (share) => {
    const [one, other] = [share.take(80, signal), share.take(20, signal)]
    assert.equal(one, other)
    await one
    await end.promise
  })
  const last = startCall(memory, [1])
  await settle()
  assert.equal(last.taken(), 1)
  await first.end()
  await last.end()
  const full = startCall(memory, [1])
  await settle()
  assert.equal(full.taken(), 0, 'the third has all of what others may have')
  end.resolve()
  await ended
  await settle()
  assert.equal(full.taken(), 1)
  for (const call of [holding, full]) await call.end()
})

test('how long an answer waits for memory is known during and after the wait', async () => {
  const memory = new AnswerMemory(0)
  const first = startCall(memory, [1])
  await settle()
  const { signal } = new AbortController()
  await within(memory, async (share) => {
    assert.equal(share.waitedMs, 0)
    const waiting = share.take(1, signal)
    await delay(20)
    const [soFar] = [share.waitedMs, await first.end(), await waiting]
    // Timers count whole milliseconds.
    assert.ok(soFar >= 19, `${soFar}`)
    const inAll = share.waitedMs
    assert.ok(inAll >= soFar)
    await delay(20)
    assert.equal(share.waitedMs, inAll)
  })
})

test('an answer gets free memory without a wait', async () => {
  await within(new AnswerMemory(100), async (share) => {
    assert.equal(share.take(1_000, new AbortController().signal), undefined)
  })
})

test('a call that ends while it waits, or fails, gives back its memory, and no answer waits for it then', async () => {
  const memory = new AnswerMemory(100)
  const first = startCall(memory, [50])
  const left = new AbortController()
  const leaving = startCall(memory, [80, 80], left.signal)
  const last = startCall(memory, [70])
  await settle()
  assert.deepEqual([leaving.taken(), last.taken()], [80, 0])
  left.abort(new Error('the caller left'))
  await assert.rejects(leaving.ended, { message: 'the caller left' })
  await settle()
  assert.equal(last.taken(), 70)
  const late = startCall(memory, [80], left.signal)
  await assert.rejects(late.ended, { message: 'the caller left' })
  first.fail(new Error('no answer'))
  await assert.rejects(first.ended, { message: 'no answer' })
  const next = startCall(memory, [100])
  await settle()
  assert.equal(next.taken(), 100)
  for (const call of [last, next]) await call.end()
})

test('the memory of a failed answer is given back at once, and its wait for more memory ends', async () => {
  const memory = new AnswerMemory(100)
  const first = startCall(memory, [50])
  await settle()
  const { signal } = new AbortController()
  await within(memory, async (share) => {
    await share.take(80, signal)
    const waiting = assert.rejects(Promise.resolve(share.take(80, signal)), { message: 'the answer failed' })
    const other = startCall(memory, [90])
    await settle()
    assert.equal(other.taken(), 0)
    share.giveBack()
    await waiting
    assert.equal(other.taken(), 90)
    const waited = share.waitedMs
    await delay(20)
    assert.equal(share.waitedMs, waited)
    // The next attempt's answer.
    const again = share.take(80, signal)
    await other.end()
    await again
  })
  await first.end()
})
