import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Caps } from '../../src/catalog/upstream.ts'
import { fc, propertyRuns } from '../support/property.ts'
import { redisOfThisFile } from '../support/services.ts'
import { World } from './world.ts'

const CAPS: Caps[] = [
  { concurrency: 4, rates: [{ max: 10, seconds: 60 }] },
  { concurrency: 8, rates: [{ max: 20, seconds: 5 }] },
  { concurrency: 4, rates: [{ max: 10, seconds: 600 }] },
  { concurrency: 4, rates: [{ max: 1, seconds: 5 }] },
  {
    concurrency: 4,
    rates: [
      { max: 8, seconds: 60 },
      { max: 3, seconds: 5 },
    ],
  },
  { concurrency: 10, rates: [{ max: 120, seconds: 20 }] },
  { concurrency: 40, rates: [{ max: 110, seconds: 20 }] },
]

const SHARES = [
  { account: 'a' },
  { account: 'b' },
  { account: 'c' },
  { account: 'd', group: 'n1' },
  { account: 'e', group: 'n1' },
]

const join = fc.record({
  op: fc.constant('join' as const),
  who: fc.constantFrom(...SHARES),
  weight: fc.constantFrom(1, 2, 4),
  isAsync: fc.boolean(),
  timeoutMs: fc.constantFrom(3_000, 30_000, 120_000),
  /** Its node believed that the cap has room. */
  hasTicket: fc.boolean(),
  times: fc.constantFrom(1, 1, 2, 5, 12),
})
const other = fc.record({
  op: fc.constantFrom(
    'leave' as const,
    'give back' as const,
    'unqueued' as const,
    'close' as const,
    'left' as const,
    'renew' as const,
  ),
  pick: fc.nat(1_000),
})
const pause = fc.record({
  op: fc.constant('pause' as const),
  ms: fc.oneof(
    fc.integer({ min: 1, max: 400 }),
    fc.integer({ min: 1, max: 5_000 }),
    fc.integer({ min: 1, max: 70_000 }),
  ),
})
const history = fc.array(
  fc.oneof({ arbitrary: join, weight: 4 }, { arbitrary: pause, weight: 4 }, { arbitrary: other, weight: 1 }),
  { minLength: 5, maxLength: 40 },
)

type Step = typeof history extends fc.Arbitrary<(infer S)[]> ? S : never

async function apply(world: World, step: Step): Promise<void> {
  if (step.op === 'join') {
    const call = { ...step, ...step.who }
    // Those of one turn of the event loop are queued in one step.
    if (step.hasTicket) await Promise.all(Array.from({ length: step.times }, () => world.join(call)))
    else {
      // Some have tickets and are not with their workers yet when the others come.
      const ticketed = Array.from({ length: Math.floor(step.times / 2) }, () => world.join(call))
      await Promise.all(ticketed)
      await world.joinIfNeeded(Array.from({ length: step.times - ticketed.length }, () => call))
    }
    // Workers take the jobs at once.
    await world.advance(0)
  } else if (step.op === 'pause') {
    await world.advance(step.ms)
  } else if (step.op === 'leave') {
    const call = world.waiting[step.pick % Math.max(1, world.waiting.length)]
    if (call) await world.leave(call)
  } else if (step.op === 'give back') {
    const permit = world.leases[step.pick % Math.max(1, world.leases.length)]
    if (permit) await world.releaseUnused(permit)
  } else if (step.op === 'unqueued') {
    await world.acquireUnqueued('a')
    await world.advance(0)
  } else if (step.op === 'close') {
    await world.applyUpstreamLimit({ closedForMs: 100 + (step.pick % 20) * 500 })
  } else if (step.op === 'left') {
    await world.applyUpstreamLimit({ remaining: { requests: step.pick % 5, resetMs: 1_000 * (step.pick % 30) } })
  } else {
    assert.equal(await world.cap.renew(world.leases, 6_000), world.leases.length)
  }
}

const { redis } = await redisOfThisFile()

it('a cap holds its windows, leases, shares and quoted waits in any history', async (t) => {
  const totals = { histories: 0, operations: 0, granted: 0, evicted: 0, refused: 0, passed: 0, roomsTold: 0 }
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...CAPS), history, async (caps, steps) => {
      const world = await new World(redis, caps).open()
      for (const step of steps) {
        await apply(world, step)
        await world.assertCounters()
      }
      await world.advance(130_000)
      await world.assertQuiet()
      totals.histories += 1
      totals.operations += world.operations
      totals.granted += world.granted
      totals.evicted += world.evicted
      totals.refused += world.refused
      totals.passed += world.passed
      totals.roomsTold += world.roomsTold
    }),
    propertyRuns(100),
  )
  t.diagnostic(JSON.stringify(totals))
  assert.ok(totals.operations > 5_000)
  assert.ok(totals.passed > 0 && totals.roomsTold > 0)
})
