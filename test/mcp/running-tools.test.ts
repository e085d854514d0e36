import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { type MessageSender, RunningTools } from '../../src/mcp/running-tools.ts'
import { Announcements } from '../../src/redis/announcements.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { until } from '../support/gateway.ts'
import { redisOfThisFile } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'web')
const { redis: spy, url } = await redisOfThisFile()
const SENDER: MessageSender = { accountId: 'a', keyId: 'k', network: '192.0.2.1' }
const counts = () => spy.keys(keys.cancellable('*').replace(/[{}]/g, '?'))

let redis: RedisConnection
let nodes: { tools: RunningTools; announcements: Announcements }[]
/** Resolves when the nodes may decide. */
let counting = Promise.withResolvers<void>()

before(async () => {
  redis = openRedis([url], 'producer', log)
  await once(redis, 'ready')
  nodes = ['first', 'second'].map(() => {
    const announcements = new Announcements([url], log)
    return { announcements, tools: new RunningTools({ redis, announcements, log, counted: () => counting.promise }) }
  })
})
after(async () => {
  for (const { announcements } of nodes) announcements.close()
  await closeRedis(redis)
})

/** Runs a tool that ends when it is cancelled, or by `end`. */
function start(node: number, sender: MessageSender, requestId: unknown) {
  const controller = new AbortController()
  const { promise, resolve } = Promise.withResolvers<string>()
  controller.signal.addEventListener('abort', () => resolve(controller.signal.reason.code))
  const ended = nodes[node]?.tools.run({ sender, requestId }, controller, () => promise) ?? assert.fail()
  return { ended, end: () => resolve('ended'), isCancelled: () => controller.signal.aborted }
}

it('a notification at another node cancels the tool of the same sender and request, and no other tool', async () => {
  counting.resolve()
  const others = [
    start(0, { ...SENDER, accountId: 'b' }, 1),
    start(0, { ...SENDER, keyId: 'other' }, 1),
    start(0, { ...SENDER, keyId: undefined }, 1),
    start(0, { ...SENDER, network: '192.0.2.2' }, 1),
    start(0, SENDER, '1'),
    start(0, SENDER, 2),
  ]
  const tool = start(0, SENDER, 1)
  await until(async () => {
    await nodes[1]?.tools.cancel(SENDER, 1)
    return tool.isCancelled()
  })
  assert.equal(await tool.ended, 'CALL_CANCELLED')
  assert.deepEqual(
    others.map(({ isCancelled }) => isCancelled()),
    others.map(() => false),
  )
  for (const { end } of others) end()
})

it('if tools of two nodes run under the same request id, a notification cancels neither of them', async () => {
  counting = Promise.withResolvers()
  const tools = [start(0, SENDER, 3), start(1, SENDER, 3)]
  const earlier = await counts()
  await nodes[0]?.tools.cancel(SENDER, 3)
  await until(async () => {
    const [count] = (await counts()).filter((key) => !earlier.includes(key))
    return count !== undefined && (await spy.get(count)) === '2'
  })
  counting.resolve()
  tools[1]?.end()
  await tools[1]?.ended
  const [left] = tools
  await until(async () => {
    await nodes[1]?.tools.cancel(SENDER, 3)
    return left?.isCancelled() === true
  })
})

it('a tool that nobody cancels sends no command to Redis', async (t) => {
  const sent = t.mock.method(redis, 'sendCommand')
  const tool = start(0, SENDER, 4)
  tool.end()
  assert.equal(await tool.ended, 'ended')
  assert.equal(sent.mock.callCount(), 0)
})
