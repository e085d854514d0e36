import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { send } from '../support/client.ts'
import { type CommandCount, countCommands } from '../support/command-count.ts'
import { recorded } from '../support/recorded.ts'
import { type Stage, startStage } from '../support/stage.ts'

const WIDE = 'concurrency=256,1000000/1'
const FACT = '/v1/call/random-facts/random'

/**
 * Health and trimmed replies are written together some time after the answer. The test waits so
 * long for them, milliseconds.
 */
const AFTERWARDS_MS = 700

/**
 * What calls cost in Redis. Commands are counted, so that the speed of the machine does not matter.
 */
describe('in Redis', () => {
  let stage: Stage
  let cell = 0

  before(async () => {
    stage = await startStage({ caps: { 'random-facts': WIDE, weather: WIDE } })
    stage.upstream.play('random-facts', () => recorded('random-facts'))
    stage.upstream.play('weather', () => recorded('weather'))
    // Connections, scripts and the month's count exist by then.
    await one(FACT)
    await one(FACT, { key: stage.account.test })
    await batch(cells(16))
  })
  after(() => stage.stop())

  const one = async (path: string, { key = stage.account.live, status = 200 } = {}) => {
    const answer = await send(stage.gateway, path, { key })
    assert.equal(answer.status, status, answer.text)
  }
  const batch = async (calls: object[], key = stage.account.live) => {
    const response = await fetch(`${stage.gateway.url}/v1/batch`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ calls }),
    })
    const lines = (await response.text()).trim().split('\n')
    assert.equal(lines.filter((line) => JSON.parse(line).status === 200).length, calls.length, lines[0])
  }
  /** Cells of the weather that no call has named yet. */
  const cells = (count: number) => {
    cell += count
    const latitudes = Array.from({ length: count }, (_, index) => (cell - index) / 10)
    return latitudes.map((latitude) => ({
      api: 'weather',
      endpoint: '/current',
      parameters: { latitude, longitude: 7 },
    }))
  }
  const facts = () =>
    Array.from({ length: 16 }, (_, index) => ({
      api: 'random-facts',
      endpoint: '/random',
      parameters: { n: `${index}` },
    }))
  const weather = (latitude: number) => `/v1/call/weather/current?latitude=${latitude}&longitude=7`

  /**
   * Counts until a count comes twice, because commands that a process sends by itself may fall into
   * a measurement, and on a busy machine commands of the call may come after it. If four counts all
   * differ, the cheapest counts.
   */
  const cost = async (work: () => Promise<unknown>): Promise<CommandCount> => {
    const counts: CommandCount[] = []
    for (let time = 0; time < 4; time += 1) {
      const count = await countCommands(stage.gateway.services.redisUrl, async () => {
        await work()
        await delay(AFTERWARDS_MS)
      })
      if (counts.some(({ wire, all }) => wire === count.wire && all === count.all)) return count
      counts.push(count)
    }
    return counts.toSorted((a, b) => a.all - b.all)[0] ?? assert.fail()
  }
  const assertCost = ({ wire, all, byName }: CommandCount, expected: { wire: number; all: number }) =>
    assert.deepEqual({ wire, all }, expected, JSON.stringify(byName, null, 2))

  it('a call alone costs these commands if the reply before it said that its cap has room', async () => {
    assertCost(await cost(() => one(FACT)), { wire: 9, all: 59 })
  })

  it('a call that gets a stored answer costs these Redis commands', async () => {
    await one(weather(1.5))
    assertCost(await cost(() => one(weather(1.5))), { wire: 7, all: 31 })
  })

  it('a cacheable call whose answer is not stored costs these Redis commands', async () => {
    const next = () => cells(1)[0]?.parameters.latitude ?? assert.fail()
    const count = await cost(() => one(weather(next())))
    // The first call of a second also looks for stored answers that have ended.
    assertCost(count, { wire: 12, all: count.all === 74 ? 74 : 73 })
  })

  it('a call with a test key costs these Redis commands', async () => {
    assertCost(await cost(() => one(FACT, { key: stage.account.test })), { wire: 6, all: 28 })
  })

  it('a refused call costs these Redis commands', async () => {
    assertCost(await cost(() => one(weather(999), { status: 400 })), { wire: 1, all: 9 })
  })

  it('sixteen calls of a batch cost little more than a single call', async () => {
    const stored = cells(16)
    await batch(stored)
    assertCost(await cost(() => batch(stored)), { wire: 8, all: 32 })
    assertCost(await cost(() => batch(facts(), stage.account.test)), { wire: 7, all: 29 })
    // How many permits end together depends on when the upstream's answers arrive.
    for (const [work, { wire, all }] of [
      [() => batch(facts()), { wire: 40, all: 280 }],
      [() => batch(cells(16)), { wire: 120, all: 600 }],
    ] as const) {
      const count = await cost(work)
      assert.ok(count.wire <= wire && count.all <= all, JSON.stringify(count, null, 2))
    }
  })

  it('a body of 50 KB is written to Redis once and read once', async () => {
    const text = 'x'.repeat(50 * 1_024)
    stage.upstream.play('random-facts', () => ({ ...recorded('random-facts'), text }))
    const bytes = async () => {
      const info = await stage.redis.info('stats')
      const of = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1])
      return of('total_net_input_bytes') + of('total_net_output_bytes')
    }
    await one(FACT)
    const costs: number[] = []
    for (let time = 0; time < 6; time += 1) {
      const before = await bytes()
      await one(FACT)
      costs.push((await bytes()) - before)
    }
    // Commands that processes send on their own fall into some of them.
    const least = Math.min(...costs)
    assert.ok(least > 2 * text.length && least < 2.25 * text.length, `${costs} bytes a call`)
  })

  it('a gateway without calls costs at most 100 commands a second', async () => {
    const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await stage.redis.info('stats'))?.[1])
    await delay(1_000)
    const [before, startedAt] = [await commands(), performance.now()]
    // The test waits as long as an idle worker sleeps, because each queue wakes it once.
    await delay(5_000)
    const perSecond = ((await commands()) - before) / ((performance.now() - startedAt) / 1_000)
    assert.ok(perSecond <= 100, `${perSecond} commands a second`)
  })
})
