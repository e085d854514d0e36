import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { Queue } from 'bullmq'
import { accountKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'

let gateway: Gateway
let account: Account
before(async () => {
  gateway = await startGateway({ isInProcess: true, workers: 0 })
  account = await signUp(gateway)
})
after(async () => await gateway.stop())

it('an asynchronous call that no worker ran by its deadline is ended by the probe process, and its unit of the month is given back', async (t) => {
  const redis = openOperatorRedis(gateway)
  const queue = new Queue(LANE.name, { connection: redis, prefix: LANE.prefix })
  t.after(async () => {
    await queue.close()
    redis.disconnect()
  })
  const path = '/v1/call/currency/latest'
  const taken = await send(gateway, path, { key: account.live, headers: { prefer: 'respond-async' } })
  assert.equal(taken.status, 202, taken.text)
  const id = String(taken.headers.get('x-call-id'))
  const job = (await queue.getJob(id)) ?? assert.fail()
  // As if ten minutes had passed.
  await job.updateData({ ...job.data, deadline: Date.now() - 60_000 })
  const inFlight = async () => await redis.zcard(accountKeys.inFlight(account.id, 'live'))
  assert.equal(await inFlight(), 1)
  await gateway.startProcess('workers/probe.ts')
  await until(async () => (await queue.getJob(id)) === undefined)
  assert.equal(await inFlight(), 0)
  const answer = await send(gateway, `/v1/calls/${id}`, { key: account.live })
  assert.equal(answer.status, 503, answer.text)
  assert.equal(answer.body.error.code, 'DEADLINE_EXCEEDED')
})
