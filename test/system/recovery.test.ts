import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { Queue } from 'bullmq'
import { CALL_JOB } from '../../src/queue/call-queue.ts'
import { decodeFrame } from '../../src/queue/frame.ts'
import type { ReplyHead } from '../../src/queue/reply-head.ts'
import { accountKeys, keys } from '../../src/redis/keys.ts'
import { type Account, type Answer, send } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { LANE, laneKey } from '../support/lane.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const FACT = '/v1/call/random-facts/random'
const DOG = '/v1/call/dog-images/random'
const fact = { id: 'a', text: 't', source: 's', source_url: 'u' }
const dog = { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }

describe('a call', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    stage = await startStage({
      caps: {
        'random-facts': 'concurrency=50,10000/1',
        'dog-images': 'concurrency=50,10000/1',
        'mock-data': undefined,
      },
      // A new worker may need time to start on a busy machine.
      timeoutMs: 40_000,
    })
    ;({ gateway, upstream, account } = stage)
  })
  after(() => stage.stop())

  const call = (path: string, url = gateway.url): Promise<Answer> => send(gateway, path, { key: account.live, url })

  it('a call whose worker was killed is answered once, by another worker, and calls of its job that had their answer are not sent again', async () => {
    const held = (url: string) => Number(new URL(url, 'http://a').searchParams.get('n')) % 2 === 1
    const kill = Promise.withResolvers<void>()
    upstream.play('random-facts', async ({ url }) => {
      if (held(url)) await kill.promise
      return fact
    })
    // Its reply says that the cap has room, so calls that come together now share jobs.
    assert.equal((await call(`${FACT}?n=0`)).status, 200)
    const before = upstream.arrivalsOf('random-facts').length
    const answers = Array.from({ length: 32 }, (_, index) => call(`${FACT}?n=${index}`))
    await Promise.all(answers.filter((_, index) => index % 2 === 0))
    await until(() => upstream.arrivalsOf('random-facts').length - before === 32)
    gateway.workers.at(-1)?.kill('SIGKILL')
    kill.resolve()
    await gateway.startWorker()
    for (const { status, text } of await Promise.all(answers)) assert.equal(status, 200, text)
    const again = upstream.arrivalsOf('random-facts').slice(before + 32)
    assert.ok(again.every(({ url }) => held(url)))
    assert.equal(again.length, 16)
    const warning =
      /"level":"warn".*"lane":"calls","jobs":[1-9]\d*,"msg":"jobs of a worker that died or stalled run again"/
    await until(() => warning.test(gateway.output.join('')))
  })

  it('a call whose worker was killed is charged and ends when its caller leaves, or cancels it, before another has it', async () => {
    upstream.play('random-facts', () => undefined)
    const usage = async () =>
      Number((await send(gateway, '/v1/billing/status', { token: account.token })).body.usage.used)
    const inFlight = async () => await stage.redis.zcard(accountKeys.inFlight(account.id, 'live'))
    await until(async () => (await inFlight()) === 0)
    const [used, before] = [await usage(), upstream.arrivalsOf('random-facts').length]
    const leaving = new AbortController()
    const left = send(gateway, `${FACT}?n=left`, { key: account.live, signal: leaving.signal }).catch(() => 'left')
    const headers = { prefer: 'respond-async' }
    const { id } = (await send(gateway, `${FACT}?n=cancelled`, { method: 'POST', key: account.live, headers })).body
    await until(() => upstream.arrivalsOf('random-facts').length === before + 2)
    for (const worker of gateway.workers) worker.kill('SIGKILL')
    await until(async () => (await stage.redis.keys(laneKey('*:lock').replaceAll(/[{}]/g, '?'))).length === 0)
    leaving.abort()
    assert.equal(await left, 'left')
    const cancelled = await send(gateway, `/v1/calls/${id}`, { method: 'DELETE', key: account.live })
    assert.equal(cancelled.status, 204, cancelled.text)
    await until(async () => (await inFlight()) === 0)
    assert.equal(await usage(), used + 2)
    await gateway.startWorker()
  })

  it('a call that ran twice is answered once', async () => {
    // If a worker stands still, another worker gets its calls. It ends them too when it continues.
    upstream.play('dog-images', async () => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      return dog
    })
    const still = gateway.workers.at(-1) ?? assert.fail()
    const before = upstream.arrivalsOf('dog-images').length
    const calls = Promise.all(Array.from({ length: 5 }, () => call(DOG)))
    await until(() => upstream.arrivalsOf('dog-images').length - before === 5)
    still.kill('SIGSTOP')
    const other = await gateway.startWorker()
    for (const { status, text } of await calls) assert.equal(status, 200, text)
    still.kill('SIGCONT')
    assert.equal((await call(DOG)).status, 200)
    other.kill('SIGTERM')
    await once(other, 'exit')
    // The worker that stood still continues.
    for (let time = 0; time < 5; time += 1) assert.equal((await call(DOG)).status, 200)
  })

  it('a call of the earlier version runs beside calls of this version, and each node gets the replies that it reads', async () => {
    upstream.play('mock-data', () => ({ id: 7, userId: 1, title: 't', body: 'b' }))
    const replyTo = keys.replies(randomUUID())
    const [old = '', ...bundled] = Array.from({ length: 3 }, () => `call_${randomUUID().replaceAll('-', '')}`)
    const jobOf = (id: string) => ({
      ...({ v: 1, mode: 'live', slug: 'mock-data', endpoint: '/posts', parameters: { id: 7 }, extra: [] } as const),
      ...{ id, accountId: account.id, raw: false, isAsync: false, replyTo, enqueuedAt: Date.now() },
      deadline: Date.now() + 30_000,
    })
    const calls = bundled.map((id) => ({ ...jobOf(id), bundledReplies: true }))
    const queue = new Queue(LANE.name, { connection: stage.redis, prefix: LANE.prefix })
    await queue.addBulk([
      { name: CALL_JOB, data: jobOf(old), opts: { jobId: old, priority: 1 } },
      { name: CALL_JOB, data: { v: 2, calls }, opts: { jobId: `shared_${bundled[0]}`, priority: 1 } },
    ])
    const entries = async () => {
      const stream = await stage.redis.xrangeBuffer(replyTo, '-', '+')
      return stream.map(([, fields]) => readFrames(fields))
    }
    await until(async () => (await entries()).flat().length === 3)
    const replies = (await entries()).flat()
    assert.deepEqual(replies.map(({ head }) => head.id).sort(), [old, ...bundled].sort())
    for (const { head, body } of replies) assert.match(body.toString(), /"id":7/, head.code)
    // Nodes of that version read only the first reply of an entry.
    assert.ok((await entries()).some(([first, ...others]) => first?.head.id === old && others.length === 0))
    await queue.close()
  })
})

/** The replies in one entry of a reply stream. */
function readFrames(fields: Buffer[]): { head: ReplyHead; body: Buffer }[] {
  return fields.filter((_, index) => index % 2 === 1).map((frame) => decodeFrame<ReplyHead>(frame))
}
