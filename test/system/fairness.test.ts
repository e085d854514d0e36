import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { capKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, createKey, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { laneKey } from '../support/lane.ts'
import { recorded } from '../support/recorded.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const UNLIMITED = { perMinute: 1_000_000, inFlight: 100_000, perMonth: 10_000_000 }

describe('accounts that share an upstream', () => {
  let gateway: Gateway
  let upstream: UpstreamServer

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 2,
      workers: 2,
      environment: {
        ...upstream.environment('random-facts', 'dog-images', 'timezone', 'mock-data', 'encyclopedia'),
        PLAN_LIMITS: JSON.stringify({ Free: UNLIMITED, Pro: UNLIMITED, Elite: UNLIMITED }),
        CALL_TIMEOUT_MS: '6000',
        UPSTREAM_RANDOM_FACTS_CAPS: 'concurrency=4,20/2',
        UPSTREAM_DOG_IMAGES_CAPS: 'concurrency=4,200/1',
        // The requests come one after the other. If several were granted at the same moment, the
        // cap would open as late as the share, and the cap would be the reason.
        UPSTREAM_TIMEZONE_CAPS: 'concurrency=1,10/30',
        UPSTREAM_ENCYCLOPEDIA_CAPS: 'concurrency=3,10/30',
        UPSTREAM_MOCK_DATA_CAPS: 'concurrency=8,50/1',
      },
    })
  })
  after(async () => {
    await gateway.stop()
    await upstream.close()
  })

  /**
   * The account that a request was for. Each account names itself in an undeclared parameter, which
   * the gateway forwards.
   */
  const arrivalsOf = (slug: string, name: string) =>
    upstream.arrivalsOf(slug).filter(({ url }) => url.includes(`who=${name}`))

  it('accounts that share an upstream are both served when one sends hundreds a second and the cap is scarce; the loud one has at most half', async () => {
    upstream.play('random-facts', () => recorded('random-facts'))
    const [noisy, quiet] = await Promise.all([signUp(gateway), signUp(gateway)])
    const call = (account: Account, who: string, index = 0) =>
      send(gateway, `/v1/call/random-facts/random?who=${who}`, {
        key: account.live,
        url: gateway.urls[index % 2] ?? '',
      })
    // The quiet account has called, so from now on the accounts share the cap.
    assert.equal((await call(quiet, 'quiet')).status, 200)
    const statuses = new Map<number, number>()
    let [sent, ended] = [0, 0]
    const flooding = setInterval(() => {
      // A slow machine gets no more calls than it answers.
      for (let index = 0; index < 8 && sent - ended < 80; index += 1) {
        sent += 1
        call(noisy, 'noisy', sent)
          .then(({ status }) => statuses.set(status, (statuses.get(status) ?? 0) + 1))
          .catch(() => undefined)
          .finally(() => {
            ended += 1
          })
      }
    }, 40)
    const redis = openOperatorRedis(gateway)
    const answers: number[] = []
    const quietCalls: { askedAt: number; answeredAt: number }[] = []
    // The noisy account's permits, by the time of their grant: a request may arrive any time later.
    const grants = new Map<string, number>()
    // Spans in which it had 11 permits that all counted. A worker gives back a permit that it
    // cannot use, so permits that the log had at different times may be more.
    const crowds: { from: number; to: number }[] = []
    // Until the noisy account has had its half twice, however long that takes.
    for (let index = 0; index < 11 || grants.size < 18; index += 1) {
      assert.ok(index < 100, `${grants.size}: half of the cap is the noisy one's to use`)
      const askedAt = Date.now()
      answers.push((await call(quiet, 'quiet', index)).status)
      quietCalls.push({ askedAt, answeredAt: Date.now() })
      const log = await redis.zrange(capKeys.of('random-facts', 'shared', 'log'), '0', '-1', 'WITHSCORES')
      const times: number[] = []
      for (let entry = 0; entry < log.length; entry += 2) {
        if (!log[entry]?.includes(noisy.id)) continue
        times.push(Number(log[entry + 1]))
        grants.set(log[entry] ?? '', Number(log[entry + 1]))
      }
      for (const [first, from] of times.entries()) {
        const to = times[first + 10] ?? Number.POSITIVE_INFINITY
        if (to - from < 2_000) crowds.push({ from, to })
      }
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    clearInterval(flooding)
    redis.disconnect()
    console.log({ sent, noisy: Object.fromEntries(statuses), granted: grants.size })
    assert.deepEqual(
      answers,
      answers.map(() => 200),
    )
    // If the machine stood still, the quiet account may not have called for a whole window. Then
    // nobody shares the cap.
    const isSharedFrom = (from: number, to: number): boolean => {
      let sharedUntil = from
      for (const { askedAt, answeredAt } of quietCalls)
        if (answeredAt <= sharedUntil) sharedUntil = Math.max(sharedUntil, askedAt + 2_000)
      return sharedUntil > to
    }
    for (const { from, to } of crowds) assert.ok(!isSharedFrom(from, to), `more than 10 of 20 in ${to - from} ms`)
  })

  it('accounts that share an upstream have shares by their plans when the cap is saturated', async () => {
    upstream.play('dog-images', () => ({ status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }))
    const tiers = ['developer', 'pro', 'business'] as const
    const accounts = await Promise.all(tiers.map((tier) => signUp(gateway, tier)))
    const redis = openOperatorRedis(gateway)
    // All calls are in the queue before the first is served, because the cap is closed until then.
    const close = (until: number) =>
      redis.hset(capKeys.of('dog-images', 'shared', 'state'), { initialisedAt: 0, closed: until })
    await close(Date.now() + 60_000)
    const calls = Array.from({ length: 60 }, (_, index) =>
      tiers.map((tier, at) =>
        send(gateway, `/v1/call/dog-images/random?who=${tier}`, {
          key: accounts[at]?.live ?? '',
          url: gateway.urls[index % 2] ?? '',
          headers: { prefer: 'respond-async' },
        }),
      ),
    ).flat()
    for (const { status, text } of await Promise.all(calls)) assert.equal(status, 202, text)
    // The workers have taken all jobs. Each asks for permits for at most 16 calls of each account.
    const waiters = capKeys.of('dog-images', 'shared', 'waiters')
    await until(async () => (await redis.llen(laneKey('wait'))) === 0 && (await redis.zcard(waiters)) >= 48)
    await close(0)
    await until(() => upstream.arrivalsOf('dog-images').length === 180)
    redis.disconnect()
    const first = upstream.arrivalsOf('dog-images').slice(0, 70)
    const counts = tiers.map((tier) => first.filter(({ url }) => url.includes(`who=${tier}`)).length)
    console.log(`first 70 of 180 by plan weights 1, 2, 4: ${counts}`)
    assert.ok((counts[0] ?? 0) >= 7 && (counts[0] ?? 0) <= 13, `${counts}`)
    assert.ok((counts[1] ?? 0) >= 16 && (counts[1] ?? 0) <= 24, `${counts}`)
    assert.ok((counts[2] ?? 0) >= 34 && (counts[2] ?? 0) <= 46, `${counts}`)
  })

  it('accounts that share an upstream do not wait for the calls of an account that has used its share, and an account does not get more by pausing', async () => {
    upstream.play('timezone', () => recorded('timezone'))
    const [hoarder, other] = await Promise.all([signUp(gateway), signUp(gateway)])
    const call = (account: Account, who: string, headers = {}) =>
      send(gateway, `/v1/call/timezone/current?timezone=UTC&who=${who}`, { key: account.live, headers })
    assert.equal((await call(other, 'other')).status, 200)
    const hoarded: string[] = []
    for (let index = 0; index < 30; index += 1) {
      const { status, headers } = await call(hoarder, 'hoarder', { prefer: 'respond-async' })
      assert.equal(status, 202)
      hoarded.push(headers.get('location') ?? '')
    }
    await until(() => arrivalsOf('timezone', 'hoarder').length === 5)
    // As if the account had sent them long ago.
    const redis = openOperatorRedis(gateway)
    await redis.zadd(capKeys.of('timezone', 'shared', 'demand'), 'XX', Date.now() - 60_000, hoarder.id)
    redis.disconnect()
    for (let index = 0; index < 4; index += 1) assert.equal((await call(other, 'other')).status, 200)
    const refused = await call(hoarder, 'hoarder')
    assert.equal(refused.status, 503)
    assert.match(refused.text, /You have used your fair share of this API for now/)
    assert.ok(Number(refused.headers.get('retry-after')) <= 31)
    assert.equal(arrivalsOf('timezone', 'hoarder').length, 5)
    // Workers that end would wait for the calls that wait.
    const statuses = await Promise.all(
      hoarded.map((path) => send(gateway, path, { key: hoarder.live, method: 'DELETE' })),
    )
    assert.equal(statuses.filter(({ status }) => status === 204).length, 25)
  })

  it('accounts that share an upstream are not held up by a call for the same answer whose own share is used up', async () => {
    upstream.play('encyclopedia', ({ url }) => ({ ...recorded('encyclopedia'), title: url.split('/').at(-1) }))
    const [hoarder, other] = await Promise.all([signUp(gateway), signUp(gateway)])
    const call = (account: Account, title: string, headers = {}) =>
      send(gateway, `/v1/call/encyclopedia/summary?title=${title}`, { key: account.live, headers })
    const arrivals = (title: string) => upstream.arrivalsOf('encyclopedia').filter(({ url }) => url.endsWith(title))
    assert.equal((await call(other, 'First')).status, 200)
    for (let index = 0; index < 5; index += 1) assert.equal((await call(hoarder, `Own${index}`)).status, 200)
    const patient = await call(hoarder, 'Wanted', { prefer: 'respond-async' })
    assert.equal(patient.status, 202)
    const redis = openOperatorRedis(gateway)
    await until(async () => (await redis.keys('agw:{encyclopedia}:leader:*')).length === 1)
    redis.disconnect()
    const served = await call(other, 'Wanted')
    assert.equal(served.status, 200, served.text)
    assert.equal(served.body.data.title, 'Wanted')
    assert.equal(arrivals('Wanted').length, 1)
    assert.equal(arrivals('').length, 7)
  })

  it('all keys of an account count together for its share of an upstream', async () => {
    upstream.play('mock-data', () => ({ id: 1, userId: 1, title: 't', body: 'b' }))
    const account = await signUp(gateway)
    const second = await createKey(gateway, account.token)
    const redis = openOperatorRedis(gateway)
    for (const key of [account.live, second.key]) {
      assert.equal((await send(gateway, '/v1/call/mock-data/posts?id=1', { key })).status, 200)
    }
    assert.equal(await redis.zcard(capKeys.of('mock-data', 'shared', 'demand')), 1)
    redis.disconnect()
  })
})
