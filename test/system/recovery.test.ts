import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { type Account, type Answer, send } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
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
      timeoutMs: 15_000,
    })
    ;({ gateway, upstream, account } = stage)
  })
  after(() => stage.stop())

  const call = (path: string, url = gateway.url): Promise<Answer> => send(gateway, path, { key: account.live, url })

  it('whose worker was killed is answered by another, once', async () => {
    upstream.play('random-facts', async () => {
      await new Promise((resolve) => setTimeout(resolve, 400))
      return fact
    })
    const before = upstream.arrivalsOf('random-facts').length
    const startedAt = performance.now()
    const calls = Promise.all(Array.from({ length: 10 }, () => call(FACT)))
    await until(() => upstream.arrivalsOf('random-facts').length - before === 10)
    gateway.workers.at(-1)?.kill('SIGKILL')
    await gateway.startWorker()
    for (const { status, text } of await calls) assert.equal(status, 200, text)
    console.log(
      `answered ${Math.round(performance.now() - startedAt)} ms after they were sent, worker killed in between`,
    )
    assert.equal(upstream.arrivalsOf('random-facts').length - before, 20)
  })

  it('that ran twice is answered once', async () => {
    // A worker that stands still loses its calls to another, and ends them too when it goes on.
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
    // The one that stood still works on.
    for (let time = 0; time < 5; time += 1) assert.equal((await call(DOG)).status, 200)
  })
})
