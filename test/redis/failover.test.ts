import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { RedisError } from '../../src/redis/redis-error.ts'
import { problemOf } from '../../src/redis/server-info.ts'
import { until } from '../support/gateway.ts'
import { type PlainRedis, startPlainRedis } from '../support/redis-server.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

let folder: string
let first: PlainRedis
let second: PlainRedis

/**
 * One address that leads new connections to the primary of the moment and leaves open connections
 * alone.
 */
let primary: PlainRedis
const front = createServer((client) => {
  const server = connect(primary.port, '127.0.0.1')
  client.pipe(server).pipe(client)
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const)
    one.on('error', () => other.destroy()).on('close', () => other.destroy())
})

const urlOf = (port: number): string => `redis://127.0.0.1:${port}`

/**
 * The effect of a planned failover of a managed service: the former primary lives on as a replica.
 */
async function swap(to: PlainRedis, from: PlainRedis): Promise<void> {
  await to.client.call('REPLICAOF', 'NO', 'ONE')
  primary = to
  await from.client.call('REPLICAOF', '127.0.0.1', String(to.port))
  await until(async () => /master_link_status:up/.test(await from.client.info('replication')), 20_000)
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agw-failover-'))
  ;[first, second] = await Promise.all([startPlainRedis(join(folder, '1')), startPlainRedis(join(folder, '2'))])
  await swap(first, second)
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
})
after(async () => {
  front.close()
  await Promise.all([first.stop(), second.stop()])
  await rm(folder, { recursive: true, force: true })
})

describe('one address behind which a replica is promoted', () => {
  it('connections of every kind move to the new primary behind an address, although the former primary keeps them open', async (t) => {
    const url = urlOf((front.address() as AddressInfo).port)
    const producer = openRedis([url], 'producer', log)
    const worker = openRedis([url], 'blocking', log)
    const reader = openRedis([url], 'blocking', log)
    t.after(() => Promise.all([producer, worker, reader].map(closeRedis)))
    await until(() => [producer, worker, reader].every(({ status }) => status === 'ready'))
    await producer.set('key', 'before')
    const popped = (worker as Redis).blpop('list', 0).catch((error: unknown) => error)
    // The former primary must have the blocked command before it becomes a replica.
    await until(async () => /blocked_clients:1/.test(await first.client.info('clients')))
    await swap(second, first)
    const refusal = await producer.set('key', 'refused').then(
      () => assert.fail('the former primary takes no write'),
      (error: unknown) => error,
    )
    assert.ok(refusal instanceof RedisError)
    assert.equal(refusal.replyCode, 'READONLY')
    await until(async () => (await producer.set('key', 'after').catch(() => '')) === 'OK', 5_000)
    assert.equal(await second.client.get('key'), 'after')
    const unblocked = await popped
    assert.ok(unblocked instanceof RedisError && unblocked.replyCode === 'UNBLOCKED', String(unblocked))
    await until(async () => (await worker.set('key', 'by the worker').catch(() => '')) === 'OK', 5_000)
    // If a connection only reads, nothing is refused until it writes.
    await until(async () => (await reader.set('key', 'by the reader').catch(() => '')) === 'OK', 5_000)
    assert.equal(await second.client.get('key'), 'by the reader')
  })

  it('an address that stays a replica is tried about once a second, and the problem names the replica', async (t) => {
    const replica = primary === first ? second : first
    const redis = openRedis([urlOf(replica.port)], 'producer', log)
    t.after(() => closeRedis(redis))
    await until(() => redis.status === 'ready')
    const problem = problemOf(await redis.info(), redis)
    assert.equal(problem, 'Redis is a replica and accepts no writes: REDIS_URL must be the address of the primary')
    let closed = 0
    redis.on('close', () => {
      closed += 1
    })
    await Promise.all(Array.from({ length: 50 }, () => redis.set('key', 'x').catch(() => undefined)))
    await until(() => closed === 1 && redis.status === 'ready')
    await Promise.all(Array.from({ length: 50 }, () => redis.set('key', 'x').catch(() => undefined)))
    await redis.ping()
    assert.equal(closed, 1)
  })
})

it('a Valkey that is a node of a Cluster is recognised by the name that Valkey uses for the mode', async (t) => {
  const redis = openRedis([urlOf(first.port)], 'producer', log)
  t.after(() => closeRedis(redis))
  for (const field of ['redis_mode', 'server_mode'])
    assert.match(problemOf(`redis_version:7.2.4\r\n${field}:cluster\r\n`, redis) ?? '', /node of a Cluster/)
  assert.equal(problemOf('redis_version:7.2.4\r\nserver_mode:standalone\r\nrole:master\r\n', redis), undefined)
})
