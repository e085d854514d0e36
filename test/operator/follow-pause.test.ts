import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { repairHeldQueues, repairReleasedQueues } from '../../src/operator/follow-pause.ts'
import { changePause } from '../../src/operator/pause-upstream.ts'
import { openTestConsole, type TestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'

describe('a pause that holds calls', () => {
  let console_: TestConsole

  before(async () => {
    console_ = await openTestConsole()
  })
  after(async () => await console_.stop())

  const act = async (slug: string, action: string, mode?: string) => {
    const url = `/v1/operator/upstreams/${slug}/${action}`
    const answer = await console_.app.inject({
      method: 'POST',
      url,
      headers: { ...console_.bearer, 'content-type': 'application/json' },
      payload: mode === undefined ? '' : JSON.stringify({ mode }),
    })
    assert.equal(answer.statusCode, 200, answer.body)
  }
  const isPaused = async (slug: string) => await console_.context.queues.of(slug).isPaused()
  const setting = (slug: string) => console_.context.catalog.get(slug)?.pausedMode

  it('a pause that holds calls does so when another operator was just pausing the same API in the other mode', async () => {
    const refusing = act('weather', 'pause', 'refuse')
    await until(() => setting('weather') === 'refuse')
    await act('weather', 'pause', 'hold')
    await refusing
    assert.deepEqual([setting('weather'), await isPaused('weather')], ['hold', true])
    await Promise.all([act('weather', 'pause', 'hold'), act('weather', 'resume'), act('weather', 'pause', 'hold')])
    assert.equal(await isPaused('weather'), setting('weather') === 'hold')
    await act('weather', 'resume')
    assert.deepEqual([setting('weather'), await isPaused('weather')], [undefined, false])
  })

  it('a pause that holds calls does so again after Redis has lost its data, and one that ended does not', async () => {
    const { context } = console_
    await act('trivia', 'pause', 'hold')
    await act('weather', 'pause', 'refuse')
    await context.redis.flushall()
    assert.equal(await isPaused('trivia'), false)
    await repairHeldQueues(context)
    assert.deepEqual([await isPaused('trivia'), await isPaused('weather')], [true, false])
    // A process that has not heard of the resumption yet pauses nothing.
    await act('trivia', 'resume')
    const api = context.catalog.get('trivia') ?? assert.fail()
    api.pausedMode = 'hold'
    await repairHeldQueues(context)
    assert.equal(await isPaused('trivia'), false)
  })
  it('a pause that holds calls ends too when its resumption was cut off before the queue went on', async () => {
    const { context } = console_
    await act('currency', 'pause', 'hold')
    // As far as a resumption came: Postgres has it, and the queue does not.
    await changePause(context.db, 'currency', { mode: null, actor: 'test' })
    await context.settings.read()
    assert.deepEqual([setting('currency'), await isPaused('currency')], [undefined, true])
    await repairReleasedQueues(context)
    assert.equal(await isPaused('currency'), false)
    // A process that has not heard of a new pause yet lets nothing go on.
    await act('currency', 'pause', 'hold')
    const api = context.catalog.get('currency') ?? assert.fail()
    api.pausedMode = undefined
    await repairReleasedQueues(context)
    assert.equal(await isPaused('currency'), true)
    await act('currency', 'resume')
  })
})
