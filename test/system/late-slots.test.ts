import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { until } from '../support/gateway.ts'
import { recorded } from '../support/recorded.ts'
import { type Stage, startStage } from '../support/stage.ts'

/**
 * The gateway's window of the one request that a cap allows: the window of the upstream, and a
 * margin. Milliseconds.
 */
const WINDOW_MS = 2_500
const TIMEOUT_MS = 6_000
const ANSWER_MS = 15

/**
 * Calls whose answers are not stored, and how much time the pushed call of each API has left at its
 * slot, milliseconds.
 */
const CALLS: [slug: string, path: string, leftMs: number][] = [
  ['random-facts', '/random', 50],
  ['dog-images', '/random', 90],
  ['timezone', '/current?timezone=UTC', 130],
]

describe('a slot of a cap', () => {
  let stage: Stage

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      caps: Object.fromEntries(CALLS.map(([slug]) => [slug, 'concurrency=5,1/2'])),
      timeoutMs: TIMEOUT_MS,
    })
    for (const [slug] of CALLS) {
      stage.upstream.play(slug, async () => {
        await delay(ANSWER_MS)
        return recorded(slug)
      })
    }
  })
  after(() => stage.stop())

  /**
   * Calls of two accounts. The call of the second account takes the slot that would have been in
   * time for the third call.
   */
  const push = async ([slug, path, leftMs]: (typeof CALLS)[number], other: Account): Promise<Answer[]> => {
    const call = ({ live }: Account) => send(stage.gateway, `/v1/call/${slug}${path}`, { key: live })
    const first = call(stage.account)
    const arrivals = () => stage.upstream.arrivalsOf(slug)
    await until(() => arrivals().length === 1)
    const startedAt = arrivals()[0]?.at ?? assert.fail()
    const second = call(stage.account)
    await delay(startedAt + 3 * WINDOW_MS + leftMs - TIMEOUT_MS - performance.now())
    const pushed = call(stage.account)
    await delay(50)
    return await Promise.all([first, second, pushed, call(other)])
  }

  it('a slot of a cap that comes too late for the answer of its call is left to others, and the caller reads the refusal of the cap', async () => {
    const other = await signUp(stage.gateway)
    const answers = await Promise.all(CALLS.map((pushed) => push(pushed, other)))
    for (const [index, [slug]] of CALLS.entries()) {
      const of = answers[index] ?? []
      // If a call comes later on a busy machine, its slot serves it, or the node refuses it when it
      // comes.
      const refused = of.filter(({ status }) => status !== 200)
      for (const { status, body, headers } of refused) {
        assert.deepEqual([status, body.error.code], [503, 'UPSTREAM_CAP_EXHAUSTED'], slug)
        assert.ok(Number(headers.get('retry-after')) > 0)
      }
      assert.equal(stage.upstream.arrivalsOf(slug).length, of.length - refused.length, 'each request had an answer')
    }
    console.log(
      `${answers.flat().filter(({ status }) => status !== 200).length} of ${answers.length} pushed calls were refused`,
    )
  })
})
