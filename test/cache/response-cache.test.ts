import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ResponseCache } from '../../src/cache/response-cache.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { type Services, startServices } from '../support/services.ts'

describe('stored answers', () => {
  let services: Services
  let redis: RedisConnection
  let cache: ResponseCache
  before(async () => {
    services = await startServices()
    const log = createLog({ level: 'silent', pretty: false }, 'test')
    redis = openRedis([services.redisUrl], 'blocking', log)
    cache = new ResponseCache(redis, log)
  })
  after(async () => {
    await closeRedis(redis)
    await services.stop()
  })

  const STORED_AT = 1_800_000_000_000
  const store = (slug: string, hash: string, bytes: number, { hasUndeclared = false, owner = 'someone' } = {}) =>
    cache.store({ slug, hasUndeclared, owner }, upstreamKeys.cacheEntry(slug, hash), {
      storedAt: STORED_AT,
      freshMs: 3_600_000,
      staleWhileRevalidateMs: 0,
      staleIfErrorMs: 0,
      body: Buffer.alloc(bytes, 'x'),
    })
  const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  const counted = async (slug: string, room: string) =>
    Number(await redis.hget(upstreamKeys.cacheSizes(slug, room), 'total'))

  it('stored answers are counted by what Redis really uses for them, small ones too', async () => {
    const before = await usedMemory()
    for (let from = 0; from < 20_000; from += 1_000) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, index) => store('small', `${from + index}`.padEnd(27, 'h'), 300)),
      )
    }
    const used = (await usedMemory()) - before
    const bytes = await counted('small', 'plain')
    assert.ok(bytes > used * 0.8 && bytes < used * 1.3, `counted ${bytes}, used ${used}`)
  })

  it('stored answers of calls with undeclared parameters push out each other and nobody else’s', async () => {
    await store('rooms', 'plain', 100_000)
    for (let index = 0; index < 40; index += 1)
      await store('rooms', `made-up-${index}`, 400_000, { hasUndeclared: true })
    assert.ok((await counted('rooms', 'undeclared')) <= 2 * 1024 * 1024)
    assert.ok(await cache.get(upstreamKeys.cacheEntry('rooms', 'plain')))
    assert.ok(await cache.get(upstreamKeys.cacheEntry('rooms', 'made-up-39')))
    assert.equal(await cache.get(upstreamKeys.cacheEntry('rooms', 'made-up-0')), undefined)
  })

  it('stored answers of an account that fills the room make way for those of others, and an account alone has all of it', async () => {
    const room = 16 * 1024 * 1024
    for (let index = 0; index < 20; index += 1) await store('shares', `other-${index}`, 100_000, { owner: 'other' })
    for (let index = 0; index < 60; index += 1) await store('shares', `many-${index}`, 500_000, { owner: 'greedy' })
    const kept = async (name: string, count: number) => {
      const keys = Array.from({ length: count }, (_, index) => upstreamKeys.cacheEntry('shares', `${name}-${index}`))
      return await redis.exists(...keys)
    }
    assert.equal(await kept('other', 20), 20)
    const greedy = await kept('many', 60)
    assert.ok(greedy * 500_000 > room * 0.75, `${greedy}`)
    const bytes = await counted('shares', 'plain')
    assert.ok(bytes > room * 0.9 && bytes <= room, `${bytes}`)
    const owners = await redis.zrange(upstreamKeys.cacheOwners('shares', 'plain'), '0', '-1', 'WITHSCORES')
    assert.equal(Number(owners[1]) + Number(owners[3]), bytes)
    // With as much to store, both have half.
    for (let index = 0; index < 60; index += 1) await store('shares', `second-${index}`, 500_000, { owner: 'second' })
    const [second, first] = [await kept('second', 60), await kept('many', 60)]
    assert.ok(Math.abs(second - first) <= 2, `${second} and ${first}`)
    assert.equal(await kept('other', 20), 20)
  })

  it('stored answers that are stored again are counted once', async () => {
    for (let index = 0; index < 5; index += 1) await store('again', 'same', 1_000)
    const bytes = await counted('again', 'plain')
    assert.ok(bytes > 1_000 && bytes < 2_500, String(bytes))
  })

  it('stored answers end when they are too old to be served in any case', async () => {
    await store('ending', 'any', 1_000)
    const lifeMs = await redis.pttl(upstreamKeys.cacheEntry('ending', 'any'))
    assert.ok(lifeMs > 3_540_000 && lifeMs <= 3_600_000, `a stored answer lives ${lifeMs} ms`)
  })
})
