import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Lead } from '../../src/cache/cache-key.ts'
import { ResponseCache } from '../../src/cache/response-cache.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { type Services, startServices } from '../support/services.ts'

const partitionKey = (name: 'index' | 'sizes' | 'owners' | 'owned', slug: string, partition: string) =>
  `agw:{${slug}}:cache-${name}:${partition}`

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
  const store = (
    slug: string,
    hash: string,
    bytes: number,
    { hasUndeclared = false, owner = 'someone', storedAt = STORED_AT, freshMs = 3_600_000 } = {},
  ) =>
    cache.store({ slug, hasUndeclared, owner }, upstreamKeys.cacheEntry(slug, hash), {
      storedAt,
      freshMs,
      staleWhileRevalidateMs: 0,
      staleIfErrorMs: 0,
      body: Buffer.alloc(bytes, 'x'),
    })
  const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  /** How many answers each of the keys of a partition knows. */
  const known = async (slug: string) => [
    await redis.zcard(partitionKey('index', slug, 'plain')),
    await redis.zcard(partitionKey('owned', slug, 'plain')),
    (await redis.hkeys(partitionKey('sizes', slug, 'plain'))).filter((field) => field.startsWith('agw:')).length,
  ]
  const counted = async (slug: string, room: string) =>
    Number(await redis.hget(partitionKey('sizes', slug, room), 'total'))

  it('stored answers are counted by the memory that Redis really uses for them, also small answers', async () => {
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

  it('stored answers of calls with undeclared parameters evict each other, and no other answers', async () => {
    await store('rooms', 'plain', 100_000)
    for (let index = 0; index < 40; index += 1)
      await store('rooms', `made-up-${index}`, 400_000, { hasUndeclared: true })
    assert.ok((await counted('rooms', 'undeclared')) <= 2 * 1024 * 1024)
    assert.ok(await cache.get(upstreamKeys.cacheEntry('rooms', 'plain')))
    assert.ok(await cache.get(upstreamKeys.cacheEntry('rooms', 'made-up-39')))
    assert.equal(await cache.get(upstreamKeys.cacheEntry('rooms', 'made-up-0')), undefined)
  })

  it('answers of an account that fills the room make way for answers of other accounts, and an account that is alone has all the room', async () => {
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
    const owners = await redis.zrange(partitionKey('owners', 'shares', 'plain'), '0', '-1', 'WITHSCORES')
    assert.equal(Number(owners[1]) + Number(owners[3]), bytes)
    assert.deepEqual(await known('shares'), [20 + greedy, 20 + greedy, 20 + greedy])
    // If both store as much, each has half.
    for (let index = 0; index < 60; index += 1) await store('shares', `second-${index}`, 500_000, { owner: 'second' })
    const [second, first] = [await kept('second', 60), await kept('many', 60)]
    assert.ok(Math.abs(second - first) <= 2, `${second} and ${first}`)
    assert.equal(await kept('other', 20), 20)
  })

  it('answers of accounts that use equal room make way in turn', async () => {
    for (let index = 0; index < 2_500; index += 1) {
      await store('even', `${index}`.padStart(6, '0'), 1_000, { hasUndeclared: true, owner: `owner-${index % 2}` })
    }
    const owners = await redis.zrange(partitionKey('owners', 'even', 'undeclared'), '0', '-1', 'WITHSCORES')
    const [less, more] = [Number(owners[1]), Number(owners[3])]
    assert.ok(less + more > 2 * 1024 * 1024 * 0.98 && more - less < 4_000, owners.join(' '))
  })

  it('answers of the account that uses most room make way although all other answers end sooner', async () => {
    for (let index = 0; index < 400; index += 1) await store('late', `soon-${index}`, 10_000, { owner: 'small' })
    for (let index = 0; index < 60; index += 1)
      await store('late', `late-${index}`, 500_000, { owner: 'greedy', freshMs: 7_200_000 })
    const keys = Array.from({ length: 400 }, (_, index) => upstreamKeys.cacheEntry('late', `soon-${index}`))
    assert.equal(await redis.exists(...keys), 400)
  })

  it('answers that a version without owners stored make way too, and the answers that end soonest go first', async () => {
    const small = ['small-0', 'small-1', 'small-2']
    for (const name of small) await store('upgrade', name, 1_000, { owner: 'small', freshMs: 1_000_000 })
    for (let index = 0; index < 40; index += 1) {
      await store('upgrade', `old-${index}`, 400_000, { freshMs: 3_600_000 + index })
      await redis.del(partitionKey('owned', 'upgrade', 'plain'))
    }
    await store('upgrade', 'new', 400_000)
    assert.equal(await redis.exists(...small.map((name) => upstreamKeys.cacheEntry('upgrade', name))), 3)
    assert.ok((await counted('upgrade', 'plain')) <= 16 * 1024 * 1024)
    const newest = ['new', 'old-39', 'old-20'].map((name) => upstreamKeys.cacheEntry('upgrade', name))
    assert.equal(await redis.exists(...newest), 3)
  })

  it('answers that workers of a version without owners remove and renew leave nothing under their owner, and are counted right', async () => {
    const names = Array.from({ length: 38 }, (_, index) => `both-${index}`)
    for (const name of names) await store('both', name, 400_000)
    const [index, sizes] = [partitionKey('index', 'both', 'plain'), partitionKey('sizes', 'both', 'plain')]
    const owners = partitionKey('owners', 'both', 'plain')
    for (const [number, name] of names.entries()) {
      const key = upstreamKeys.cacheEntry('both', name)
      const bytes = Number.parseInt((await redis.hget(sizes, key)) ?? '', 10)
      // Redis evicts all answers but the few that were renewed to end later.
      if (number >= 3) {
        await redis.multi().hdel(sizes, key).zrem(index, key).del(key).hincrby(sizes, 'total', -bytes).exec()
        await redis.zincrby(owners, -bytes, 'someone')
      } else await redis.zincrby(index, 1_000, key)
    }
    for (let number = 0; number < 60; number += 1) await store('both', `new-${number}`, 400_000)
    const bytes = await counted('both', 'plain')
    assert.ok(bytes > 15 * 1024 * 1024 && bytes <= 16 * 1024 * 1024, String(bytes))
    const kept = Object.entries(await redis.hgetall(sizes)).filter(([name]) => name.startsWith('agw:'))
    assert.equal(
      kept.reduce((sum, [, size]) => sum + Number.parseInt(size, 10), 0),
      bytes,
    )
    assert.equal(Number(await redis.zscore(owners, 'someone')), bytes)
    assert.equal(await redis.exists(...kept.map(([key]) => key)), kept.length)
    const [byEnd, byOwner] = await known('both')
    assert.equal(byEnd, kept.length)
    // Redis knows the renewed answers by their first end until a caller looks at them.
    assert.ok((byOwner ?? 0) >= kept.length - 3 && (byOwner ?? 0) <= kept.length, `${byOwner} of ${kept.length}`)
  })

  it('answers that have expired give their room back to the accounts that used it', async () => {
    const at = (storedAt: number, hash: string, freshMs: number) =>
      store('ended', hash, 1_000, { storedAt, freshMs, owner: hash.slice(0, 1) })
    for (let index = 0; index < 600; index += 1) await at(STORED_AT, `${index % 2 ? 'a' : 'b'}-${index}`, 1_000)
    for (let index = 0; index < 2; index += 1) await at(STORED_AT + 2_000, `c-${index}`, 1_000)
    assert.deepEqual(await known('ended'), [2, 2, 2])
    const owners = await redis.zrange(partitionKey('owners', 'ended', 'plain'), '0', '-1', 'WITHSCORES')
    assert.deepEqual(owners, ['c', String(await counted('ended', 'plain'))])
  })

  it('expired answers make way before any answer of an account that uses more room', async () => {
    const name = (index: number) => `${index}`.padStart(3, '0')
    const at = (index: number, owner: string, storedAt: number, freshMs: number) =>
      store('ended-first', owner + name(index), 100_000, { hasUndeclared: true, owner, storedAt, freshMs })
    // All of them in the same second, in which the cache looks through the partition only once.
    for (let index = 0; index < 5; index += 1) await at(index, 'ended', STORED_AT, 100)
    for (let index = 0; index < 18; index += 1) await at(index, 'more', STORED_AT + 200, 3_600_000)
    const keys = Array.from({ length: 18 }, (_, index) => upstreamKeys.cacheEntry('ended-first', `more${name(index)}`))
    assert.equal(await redis.exists(...keys), 18)
  })

  it('an answer that is stored again is counted once', async () => {
    for (let index = 0; index < 5; index += 1) await store('again', 'same', 1_000)
    const bytes = await counted('again', 'plain')
    assert.ok(bytes > 1_000 && bytes < 2_500, String(bytes))
    assert.deepEqual(await known('again'), [1, 1, 1])
  })

  it('an answer expires when it is too old for every use', async () => {
    await store('ending', 'any', 1_000)
    const lifeMs = await redis.pttl(upstreamKeys.cacheEntry('ending', 'any'))
    assert.ok(lifeMs > 3_540_000 && lifeMs <= 3_600_000, `a stored answer lives ${lifeMs} ms`)
  })

  it('answers of several APIs that come together are stored together, and an answer that cannot be stored does not keep the others out', async () => {
    await redis.set(partitionKey('index', 'together-1', 'plain'), 'no sorted set')
    const slugs = Array.from({ length: 20 }, (_, index) => `together-${index}`)
    assert.deepEqual(
      await Promise.all(slugs.map((slug) => store(slug, 'one', slug === 'together-4' ? 100_000 : 1_000))),
      slugs.map((slug) => slug !== 'together-1'),
    )
    for (const slug of slugs.filter((slug) => slug !== 'together-1')) {
      assert.deepEqual(await known(slug), [1, 1, 1])
      assert.ok(await cache.get(upstreamKeys.cacheEntry(slug, 'one')))
    }
    assert.equal(await store('together-1', 'alone', 1_000), false)
  })

  it('the step that stores an answer ends the lead of the request that brought it, and no other lead', async () => {
    const answer = upstreamKeys.cacheEntry('lead', 'x')
    const keys = { answer, leader: upstreamKeys.leader('lead', 'x'), coalesced: upstreamKeys.coalesced('lead', 'x') }
    const body = Buffer.from('{}')
    const storeAs = async (token: string) => {
      const lead: Lead = { keys, tokens: [token, `${token} sent`] }
      const times = { storedAt: STORED_AT, freshMs: 3_600_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
      const origin = { slug: 'lead', hasUndeclared: false, owner: 'someone', lead }
      assert.ok(await cache.store(origin, answer, { ...times, body }))
      return await redis.exists(keys.leader, keys.coalesced)
    }
    for (const holder of ['mine', 'mine sent']) {
      await redis.mset(keys.leader, holder, keys.coalesced, 'member')
      assert.equal(await storeAs('mine'), 0)
    }
    await redis.mset(keys.leader, 'of another', keys.coalesced, 'member')
    const [left] = await Promise.all([storeAs('mine'), store('beside', 'x', 1_000), storeAs('mine')])
    assert.equal(left, 1)
    assert.equal(await redis.get(keys.leader), 'of another')
  })
})
