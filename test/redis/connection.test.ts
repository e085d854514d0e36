import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { toGatewayError } from '../../src/errors.ts'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { createLog } from '../../src/log.ts'
import { batchWritesPerTick, closeRedis, openRedis } from '../../src/redis/connection.ts'
import { isUnacknowledged, RedisError } from '../../src/redis/redis-error.ts'
import { reconnectWhenSilent } from '../../src/redis/silence.ts'
import { until } from '../support/gateway.ts'
import { type OwnServices, startOwnServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** Counts the writes that reach the system, after corking. */
function countWrites(socket: Socket): () => number {
  let count = 0
  const handle = Reflect.get(socket, '_handle')
  for (const name of ['writeUtf8String', 'writeLatin1String', 'writeBuffer', 'writev']) {
    const write = handle[name]
    handle[name] = (...values: unknown[]) => {
      count += 1
      return write.apply(handle, values)
    }
  }
  return () => count
}

describe('a Redis connection', () => {
  let services: OwnServices
  before(async () => {
    services = await startOwnServices()
  })
  after(() => services.stop())

  it('a Redis connection has its socket in the field `stream`, which the corking of writes depends on', async () => {
    const redis = new Redis(services.redisUrl, { lazyConnect: true })
    try {
      await redis.connect()
      const stream = Reflect.get(redis, 'stream')
      assert.equal(typeof stream?.cork, 'function')
      assert.equal(typeof stream?.uncork, 'function')
      assert.equal(typeof stream?.write, 'function')
    } finally {
      redis.disconnect()
    }
  })

  it('a Redis connection sends the commands of one tick in one write, also after a reconnect, and gets every answer in order', async () => {
    const redis = new Redis(services.redisUrl)
    batchWritesPerTick(redis)
    try {
      for (let round = 0; round < 2; round += 1) {
        await until(() => redis.status === 'ready')
        const writes = countWrites(Reflect.get(redis, 'stream'))
        const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => redis.echo(`${round}-${index}`)))
        assert.deepEqual(
          answers,
          Array.from({ length: 50 }, (_, index) => `${round}-${index}`),
        )
        assert.equal(writes(), 1, 'writes of 50 commands')
        const closed = new Promise((resolve) => redis.once('close', resolve))
        redis.disconnect(true)
        await closed
      }
    } finally {
      redis.disconnect()
    }
  })

  it('a Redis connection of a producer fails within seconds when Redis is silent, and serves again when it is back', async () => {
    const producer = openRedis([services.redisUrl], 'producer', log)
    await until(() => producer.status === 'ready')
    await services.signalRedis('SIGSTOP')
    try {
      await assert.rejects(producer.ping(), (error) => {
        assert.ok(error instanceof RedisError && error.cause instanceof Error)
        assert.equal(error.cause.name, 'SilentRedisError')
        assert.equal(error.code, 'DEPENDENCY_UNAVAILABLE')
        assert.equal(isUnacknowledged(error), true)
        return true
      })
    } finally {
      await services.signalRedis('SIGCONT')
    }
    await until(async () => (await producer.ping().catch(() => '')) === 'PONG')
    producer.disconnect()
  })

  it('a Redis connection of a waiter is opened anew when Redis is silent, and its commands are sent again', async () => {
    const waiter = openRedis([services.redisUrl], 'blocking', log) as Redis
    await until(() => waiter.status === 'ready')
    reconnectWhenSilent(waiter, 500)
    await services.signalRedis('SIGSTOP')
    let answer: Promise<string>
    try {
      const closed = once(waiter, 'close')
      answer = waiter.ping()
      await closed
    } finally {
      await services.signalRedis('SIGCONT')
    }
    assert.equal(await answer, 'PONG')
    waiter.disconnect()
  })

  it('a Redis connection of a producer does not count the time in which its own process was too busy to read as silence of Redis', async () => {
    const producer = openRedis([services.redisUrl], 'producer', log)
    await until(() => producer.status === 'ready')
    const answers: Promise<string>[] = []
    for (let round = 0; round < 3; round += 1) {
      answers.push(producer.ping())
      await new Promise((resolve) => setImmediate(resolve))
      // Stops the thread without using up the processor that other tests run on.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
    }
    assert.deepEqual(await Promise.all(answers), ['PONG', 'PONG', 'PONG'])
    producer.disconnect()
  })

  it('a Redis connection of a producer fails at once if Redis is unreachable, and a connection of a waiter waits for it', async () => {
    const away = 'redis://127.0.0.1:1'
    const producer = openRedis([away], 'producer', log)
    const waiter = openRedis([away], 'blocking', log)
    try {
      await assert.rejects(producer.ping(), (error) => {
        assert.ok(error instanceof RedisError)
        assert.equal(toGatewayError(error).code, 'DEPENDENCY_UNAVAILABLE')
        // It never left this process, so there is nothing to undo.
        assert.equal(isUnacknowledged(error), false)
        return true
      })
      const outcome = await Promise.race([
        waiter.ping().catch(() => 'failed'),
        new Promise((resolve) => setTimeout(() => resolve('waiting'), 300)),
      ])
      assert.equal(outcome, 'waiting')
    } finally {
      producer.disconnect()
      waiter.disconnect()
    }
  })

  it('a Redis connection fails a command that Redis refuses with the code of the protocol, from which the public code follows', async () => {
    const producer = openRedis([services.redisUrl], 'producer', log)
    await until(() => producer.status === 'ready')
    try {
      await producer.set('text', 'a')
      await assert.rejects(producer.incr('text'), (error) => {
        assert.ok(error instanceof RedisError)
        assert.deepEqual([error.replyCode, error.code, error.wasSent], ['ERR', 'DEPENDENCY_UNAVAILABLE', true])
        return true
      })
      await producer.config('SET', 'maxmemory', 1)
      await assert.rejects(producer.set('text', 'b'), (error) => {
        assert.ok(error instanceof RedisError)
        assert.deepEqual([error.replyCode, toGatewayError(error).code], ['OOM', 'OVERLOADED'])
        return true
      })
    } finally {
      await producer.config('SET', 'maxmemory', 0)
      producer.disconnect()
    }
  })

  it('a Redis connection says once why it cannot be opened, with the address and without the password, and again when the reason changes', async () => {
    const lines: string[] = []
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
    const port = await freePort()
    const waiter = openRedis([`redis://user:hunter2@127.0.0.1:${port}`], 'blocking', log)
    const failures = () =>
      lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'failed to connect to redis')
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        for (const _command of String(data).match(/^\*\d+\r$/gm) ?? []) socket.write('-WRONGPASS invalid password\r\n')
      })
    })
    try {
      let attempts = 0
      waiter.on('reconnecting', () => {
        attempts += 1
      })
      await until(() => attempts > 3)
      const told = failures().map(({ level, hosts, reason }) => ({ level, hosts, reason }))
      const reason = `connect ECONNREFUSED 127.0.0.1:${port}`
      assert.deepEqual(told, [{ level: 40, hosts: `127.0.0.1:${port}`, reason }])
      // Another reason: a server listens there now, and it refuses the password.
      server.listen(port, '127.0.0.1')
      await until(() => failures().length > 1, 10_000)
      assert.match(failures()[1].reason, /WRONGPASS/)
      assert.ok(!lines.join('').includes('hunter2'))
    } finally {
      waiter.disconnect()
      server.close()
    }
  })

  it('a Redis connection is never ready in another database than the database that its address names', async () => {
    const lines: string[] = []
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
    const waiter = openRedis([services.redisUrl.replace(/0$/, '99')], 'blocking', log)
    let isReady = false
    let attempts = 0
    waiter.on('ready', () => {
      isReady = true
    })
    waiter.on('reconnecting', () => {
      attempts += 1
    })
    try {
      await until(() => attempts > 2)
      assert.equal(isReady, false)
      assert.equal(lines.length, 1)
      assert.match(lines[0] ?? '', /DB index is out of range/)
    } finally {
      waiter.disconnect()
    }
  })

  it('a Redis connection is closed with QUIT if it is open, and at once if it is not', async () => {
    const up = openRedis([services.redisUrl], 'producer', log)
    await until(() => up.status === 'ready')
    const pending = up.ping()
    await closeRedis(up)
    assert.equal(await pending, 'PONG')
    const down = openRedis(['redis://127.0.0.1:1'], 'producer', log)
    await closeRedis(down)
    await until(() => down.status === 'end')
  })
})
