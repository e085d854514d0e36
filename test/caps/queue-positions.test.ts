import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { QueuePositions } from '../../src/caps/queue-positions.ts'
import { WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import { redisOfThisFile } from '../support/services.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()

it('polls of a queued call read its queue only now and then, and the wait in their answers still decreases', async () => {
  const world = await new World(redis, { concurrency: 1, rates: [{ max: 1, seconds: 5 }] }).open()
  const joining = { account: 'a', weight: 1, isAsync: true, timeoutMs: 60_000 }
  await world.join(joining)
  await world.advance(0)
  await world.join(joining)
  const callId = world.lastMember.slice(world.lastMember.indexOf('~') + 1)
  let reads = 0
  const positions = new QueuePositions({
    of: () => {
      reads += 1
      return world.cap
    },
  })
  const identity = { id: callId, accountId: 'a', isAsync: true, weight: 1 }
  const call = { ...identity, slug: world.slug, bucket: 'shared' }
  const poll = () => positions.of(call)
  const polls = await Promise.all([poll(), poll()])
  for (const { ahead, etaMs } of polls) {
    assert.equal(ahead, 0)
    assert.ok(etaMs > 4_000 && etaMs <= 5_000 + WINDOW_MARGIN_MS, `${etaMs}`)
  }
  assert.equal(reads, 1)
  const begin = performance.now()
  let etaMs = polls[0]?.etaMs ?? 0
  while (reads === 1) {
    await setImmediate()
    const next = await poll()
    if (reads === 1) assert.ok(next.etaMs <= etaMs, `${next.etaMs} after ${etaMs}`)
    etaMs = next.etaMs
    assert.ok(performance.now() - begin < 30_000, 'the position is never read again')
  }
  const other = await positions.of({ ...call, id: 'never-queued' })
  assert.equal(other.ahead, -1)
})
