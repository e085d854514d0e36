import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { OWN_FOLDER, SHOP_KEY, type Shop, startShop } from '../support/shop.ts'

const ITEMS = [{ sku: 'tea-1', count: 2 }]

/** Answers that say that the gateway sent nothing. */
const UNSENT = new Set([503, 429])

describe('a write', () => {
  let shop: Shop
  let gateway: Gateway
  let account: Account

  before(async () => {
    shop = await startShop()
    gateway = await startGateway({
      isInProcess: true,
      workers: 0,
      environment: {
        UPSTREAMS_DIR: OWN_FOLDER,
        BUILTIN_UPSTREAMS: 'none',
        UPSTREAM_ORDERS_URL: shop.url,
        UPSTREAM_ORDERS_KEY: SHOP_KEY,
        UPSTREAM_ORDERS_CAPS: 'concurrency=20,10000/1',
        CALL_TIMEOUT_MS: '8000',
        PLAN_LIMITS: '{"Free":{"perMinute":100000,"perMonth":1000000,"inFlight":200}}',
      },
    })
    await Promise.all([startWorker(), startWorker()])
    account = await signUp(gateway)
  })
  after(async () => {
    await gateway.stop()
    await shop.close()
  })

  /** Worker processes, the newest last. */
  const workers: ChildProcess[] = []
  const startWorker = async () => void workers.push((await gateway.startProcess('workers/worker.ts')).child)
  const create = (customer: string, headers = {}): Promise<Answer> =>
    send(gateway, '/v1/call/orders/create-order', {
      token: account.token,
      body: { body: { customer, items: ITEMS } },
      headers,
    })

  /** What each answer says must be true at the shop. */
  function checkAgainstShop(answers: { customer: string; answer: Answer }[]): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { customer, answer } of answers) {
      const { status, text, body } = answer
      const created = shop.createdBy(customer)
      assert.ok(created <= 1, `${customer}: ${created} requests, answered ${text}`)
      if (status === 200) assert.equal(created, 1, customer)
      else if (UNSENT.has(status)) assert.equal(created, 0, `${customer}: ${text}`)
      else assert.ok(['OUTCOME_UNKNOWN', 'UPSTREAM_ERROR'].includes(body.error.code), text)
      if (body.error?.code === 'UPSTREAM_ERROR') assert.equal(created, 0, `${customer}: ${text}`)
      const key = status === 200 ? 'ok' : body.error.code
      counts[key] = (counts[key] ?? 0) + 1
    }
    return counts
  }

  it('a write is sent at most once while workers are killed under load, and never after a 503', async () => {
    let isOver = false
    // No further writes while a worker starts: they would take most of the processor time.
    let starting: Promise<void> | undefined
    const answers: { customer: string; answer: Answer }[] = []
    const loop = async (name: number): Promise<void> => {
      for (let count = 0; !isOver; count += 1) {
        await starting
        const customer = `Load ${name}-${count}`
        answers.push({ customer, answer: await create(customer) })
      }
    }
    const loops = Array.from({ length: 12 }, (_, name) => loop(name))
    for (let kills = 1; ; kills += 1) {
      const from = answers.length
      await until(() => answers.length > from + 40)
      workers.pop()?.kill('SIGKILL')
      // The worker that is left at the end serves the calls that have not ended.
      if (kills === 4) break
      starting = startWorker()
      await starting
    }
    isOver = true
    await Promise.all(loops)
    const counts = checkAgainstShop(answers)
    assert.ok((counts.ok ?? 0) > 100, JSON.stringify(counts))
  })

  it('a write whose worker is killed after its first byte is OUTCOME_UNKNOWN, and no other worker sends it again', async () => {
    shop.mode = 'hangs'
    const answering = create('Killed')
    await until(() => shop.createdBy('Killed') === 1)
    for (const worker of workers) worker.kill('SIGKILL')
    shop.mode = 'serves'
    await startWorker()
    const answer = await answering
    assert.deepEqual([answer.status, answer.body.error.code], [502, 'OUTCOME_UNKNOWN'], answer.text)
    assert.equal(shop.createdBy('Killed'), 1)
  })

  it('a write that no worker has started by its deadline is 503, and is not sent afterwards', async () => {
    for (const worker of workers) worker.kill('SIGKILL')
    const answer = await create('Nobody there')
    assert.ok(UNSENT.has(answer.status), answer.text)
    await startWorker()
    assert.equal((await create('After')).status, 200)
    assert.equal(shop.createdBy('Nobody there'), 0)
  })

  it('an asynchronous write that the source does not answer has the result OUTCOME_UNKNOWN', async () => {
    shop.mode = 'cuts'
    const { body } = await create('Later', { prefer: 'respond-async' })
    let result = await send(gateway, `/v1/calls/${body.id}`, { token: account.token })
    await until(async () => {
      result = await send(gateway, `/v1/calls/${body.id}`, { token: account.token })
      return result.status !== 202
    })
    shop.mode = 'serves'
    assert.deepEqual([result.status, result.body.error.code], [502, 'OUTCOME_UNKNOWN'], result.text)
    assert.equal(shop.createdBy('Later'), 1)
  })
})
