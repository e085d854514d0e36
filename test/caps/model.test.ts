import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GRANT_RULES } from '../../src/caps/scripts.ts'
import { WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import type { Caps } from '../../src/catalog/upstream.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { loadScript } from '../../src/redis/script.ts'
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
  // A wide network, in it a network that may have a quarter, and in that two further networks.
  { account: 'f', group: 'wide/q1/x' },
  { account: 'g', group: 'wide/q1/y' },
  { account: 'h', group: 'wide/q2/x' },
  { account: 'i', group: 'q3/x' },
]

const join = fc.record({
  op: fc.constant('join' as const),
  who: fc.constantFrom(...SHARES),
  weight: fc.constantFrom(1, 2, 4),
  isAsync: fc.boolean(),
  timeoutMs: fc.constantFrom(3_000, 30_000, 120_000),
  /** True if the node of the call believed that the cap has room. */
  hasTicket: fc.boolean(),
  times: fc.constantFrom(1, 1, 2, 5, 12),
  answer: fc.constantFrom(undefined, undefined, 'x', 'y'),
})
const other = fc.record({
  op: fc.constantFrom(
    'leave' as const,
    'give back' as const,
    'probe' as const,
    'repeat' as const,
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

const [FIRST_CAPS] = CAPS
const many = {
  op: 'join',
  who: { account: 'a' },
  weight: 1,
  isAsync: false,
  timeoutMs: 3_000,
  hasTicket: false,
} as const

/**
 * A call of the queue whose slot another call takes, which few random histories have: many calls
 * share an answer, the call that they wait for leaves, and others come.
 */
const TAKEN_SLOT: Step[] = [
  { ...many, times: 12, answer: 'x' },
  { op: 'leave', pick: 0 },
  { op: 'pause', ms: 1 },
  { ...many, times: 5, answer: undefined },
  { op: 'pause', ms: 1 },
  { ...many, times: 1, answer: undefined },
]

async function apply(world: World, step: Step): Promise<void> {
  if (step.op === 'join') {
    const call = { ...step, ...step.who }
    // If calls come in one tick of the event loop, one step queues them.
    if (step.hasTicket) await Promise.all(Array.from({ length: step.times }, () => world.join(call)))
    else {
      // Some calls have tickets and have not reached their workers yet when the other calls come.
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
  } else if (step.op === 'probe') {
    await world.acquireUnqueued('probe')
    await world.advance(0)
  } else if (step.op === 'repeat') {
    world.repeat(step.pick)
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
  const totals = { histories: 0, operations: 0, granted: 0, evicted: 0, refused: 0, passed: 0, roomsTold: 0, ahead: 0 }
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
      totals.ahead += world.ahead
    }),
    { ...propertyRuns<[Caps, Step[]]>(70), examples: [[FIRST_CAPS ?? assert.fail(), TAKEN_SLOT]] },
  )
  t.diagnostic(JSON.stringify(totals))
  // There are 3,700 to 5,100, because histories are random. If histories did nothing, there would
  // be far fewer.
  assert.ok(totals.operations > 1_700)
  assert.ok(totals.passed > 0 && totals.roomsTold > 0 && totals.ahead > 0)
})

const NOW = 1_800_000_000_000.125

/**
 * Rates of which a share has half, alone and beside other rates that bind sooner, later or not at
 * all.
 */
const RATES: Caps['rates'][] = [
  [{ max: 20, seconds: 1 }],
  [{ max: 7, seconds: 1 }],
  [{ max: 2, seconds: 1 }],
  [{ max: 30, seconds: 120 }],
  [
    { max: 2, seconds: 1 },
    { max: 15, seconds: 60 },
  ],
  [
    { max: 1, seconds: 5 },
    { max: 40, seconds: 3_600 },
  ],
  [
    { max: 20, seconds: 2 },
    { max: 170, seconds: 86_400 },
  ],
  [
    { max: 20, seconds: 1 },
    { max: 33, seconds: 5 },
    { max: 100, seconds: 60 },
  ],
]

const NETWORKS = ['group:wide/q1/x', 'group:wide/q1/y', 'group:wide/q2/z'] as const

const ago = fc.oneof(fc.nat(2_000), fc.nat(70_000), fc.nat(90_000_000))
/** If a permit is used late, the log counts it as much later, a second at most. */
const grantedAgo = fc.oneof(ago, ago, ago, fc.integer({ min: -1_000, max: 0 }))
const past = fc.record({
  rates: fc.constantFrom(...RATES),
  share: fc.constantFrom('a', 'group:wide/q1/x'),
  grants: fc.array(fc.record({ share: fc.constantFrom('a', 'a', 'b', ...NETWORKS), ago: grantedAgo }), {
    maxLength: 120,
  }),
  demand: fc.record(
    { a: ago, b: ago, [NETWORKS[0]]: ago, [NETWORKS[1]]: ago, [NETWORKS[2]]: ago },
    { requiredKeys: [] },
  ),
  state: fc.record(
    {
      closed: ago.map((ms) => NOW + ms - 2_000),
      left: fc.nat(60),
      leftUntil: ago.map((ms) => NOW + ms),
      askersChangedAt: ago.map((ms) => NOW - ms),
      initialisedAt: ago.map((ms) => NOW - ms),
    },
    { requiredKeys: [] },
  ),
  waiting: fc.oneof(fc.nat(300), fc.nat(30)),
})

it('a call behind others of its share opens when it does in a plan that grants each of them', async (t) => {
  const script = loadScript(new URL('./share-in-steps.lua', import.meta.url), GRANT_RULES)
  const totals = { bound: 0, quiet: 0, unbound: 0, late: 0 }
  const names = capKeys.all('steps', 'shared')
  const [log, state, demand] = (['log', 'state', 'demand'] as const).map((name) => capKeys.of('steps', 'shared', name))
  assert.ok(log && state && demand)
  const check = async (it: typeof past extends fc.Arbitrary<infer P> ? P : never) => {
    const members = it.grants.flatMap(({ share, ago }, number) => [NOW - ago, `${share}|call-${number}|${number}`])
    const demands = Object.entries(it.demand).flatMap(([share, ago]) => [NOW - Math.floor(ago / 20), share])
    const pipeline = redis
      .pipeline()
      .del(names)
      .hset(state, { initialisedAt: 0, ...it.state })
    if (members.length > 0) pipeline.zadd(log, ...members)
    if (demands.length > 0) pipeline.zadd(demand, ...demands)
    await pipeline.exec()
    const rules = it.rates.flatMap(({ max, seconds }) => [max, seconds * 1_000 + WINDOW_MARGIN_MS])
    const reply = await script.run(redis, names, [NOW, 4, it.rates.length, ...rules, it.share, it.waiting])
    const [at, quietAt, atInSteps, quietAtInSteps] = (reply as string[]).map(Number)
    assert.deepEqual([at, quietAt], [atInSteps, quietAtInSteps])
    assert.ok(at !== undefined && quietAt !== undefined)
    totals[at === 0 ? 'unbound' : at > quietAt ? 'quiet' : 'bound'] += 1
    if (at > NOW + 20_000) totals.late += 1
  }
  await fc.assert(fc.asyncProperty(past, check), propertyRuns(400))
  const none = { share: 'a' as const, grants: [], state: {} }
  await check({ ...none, rates: [{ max: 2, seconds: 1 }], demand: { a: 0, b: 0 }, waiting: 2_000 })
  // If another share has just become quiet, it no longer binds a window.
  const rates = [2, 15].map((max, index) => ({ max, seconds: 60 ** index }))
  await check({ ...none, rates, demand: { b: 30_020 }, waiting: 9 })
  t.diagnostic(JSON.stringify(totals))
  for (const [outcome, count] of Object.entries(totals)) assert.ok(count > 10, `${count} were ${outcome}`)
})
