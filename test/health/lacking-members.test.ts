import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { CONFIRM_SCORE_EVERY_MS, LACKING_TO_PROBE, ORDINARY_MS } from '../../src/health/health-thresholds.ts'
import { viewHealth } from '../../src/health/health-view.ts'
import { recordAttempt } from '../../src/health/record.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { type Services, startServices } from '../support/services.ts'

const SLUG = 'weather'

describe('the alarm for members that answers lack', () => {
  let services: Services
  let redis: RedisConnection
  let now = 0

  before(async () => {
    services = await startServices()
    redis = openRedis([services.redisUrl], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  })
  after(async () => {
    await closeRedis(redis)
    await services.stop()
  })
  beforeEach(async () => {
    now = 1_000_000
    await redis.del(upstreamKeys.health(SLUG), upstreamKeys.healthChanges(SLUG))
  })

  interface Given {
    voter?: string
    source?: 'call' | 'probe'
    endpoint?: string
    lacks?: string[]
    has?: string[]
  }
  const answer = ({ voter, source = 'call', endpoint = '/current', lacks = [], has = [] }: Given) => {
    now += 1_000
    const members = { endpoint, lacks, has }
    return recordAttempt(redis, SLUG, { result: 'ok', latencyMs: 20, source, isPlain: true, voter, members, now })
  }
  const view = async () => viewHealth(await redis.hgetall(upstreamKeys.health(SLUG)), now)
  const statusAndCause = async () => {
    const { status, cause } = await view()
    return [status, cause]
  }
  /** So many answers, and then the answer to the probe to which they lead. */
  const lacking = async (times: number, given: Given = {}) => {
    let probed: string | undefined
    for (let index = 0; index < times; index += 1)
      probed =
        (await answer({ voter: `account-${index % 2}`, lacks: ['temperature_c'], ...given })).probedEndpoint ?? probed
    if (probed !== undefined) await answer({ lacks: ['temperature_c'], ...given, endpoint: probed, source: 'probe' })
  }
  const ALARM = ['Degraded', 'lacks `temperature_c` (/current)']

  it('the alarm for members that answers lack comes when a probe lacks them after five answers in a row, not after four, and says since when', async () => {
    await lacking(LACKING_TO_PROBE - 1)
    assert.deepEqual(await statusAndCause(), ['Healthy', undefined])
    await lacking(1)
    assert.deepEqual(await statusAndCause(), ALARM)
    assert.equal((await view()).since, now)
    const [change] = await redis.xrange(upstreamKeys.healthChanges(SLUG), '-', '+')
    assert.ok(change?.[1].includes('lacks `temperature_c` (/current)'))
  })

  it('the alarm for members that answers lack is not raised by callers, however many, who request values for which the source has no data', async () => {
    const probed: (string | undefined)[] = []
    for (let index = 0; index < 20; index += 1)
      probed.push((await answer({ voter: `account-${index}`, lacks: ['temperature_c'] })).probedEndpoint)
    assert.deepEqual(await statusAndCause(), ['Healthy', undefined])
    assert.deepEqual(probed.filter(Boolean), ['/current'])
    // If the probe's answer lacks members, all answers lack them. If the probe gets no answer,
    // another probe follows later.
    now += CONFIRM_SCORE_EVERY_MS
    assert.equal((await answer({ voter: 'a', lacks: ['temperature_c'] })).probedEndpoint, '/current')
    await answer({ source: 'probe', has: ['temperature_c'] })
    await lacking(20)
    assert.deepEqual(await statusAndCause(), ['Healthy', undefined])
  })

  it('the alarm for members that answers lack is not raised by a member that is missing at times, for days', async () => {
    await lacking(LACKING_TO_PROBE - 1)
    await answer({ voter: 'c', has: ['temperature_c'] })
    await lacking(20)
    assert.deepEqual(await statusAndCause(), ['Healthy', undefined])
    now += ORDINARY_MS + 1
    await lacking(LACKING_TO_PROBE)
    assert.deepEqual(await statusAndCause(), ALARM)
  })

  it('the alarm for members that answers lack ends after three answers that have them, and then no member is ordinary', async () => {
    await lacking(LACKING_TO_PROBE)
    for (let index = 0; index < 2; index += 1) await answer({ has: ['temperature_c'] })
    assert.equal((await view()).status, 'Degraded')
    await answer({ has: ['temperature_c'] })
    assert.deepEqual(await statusAndCause(), ['Healthy', 'members-back'])
    await lacking(LACKING_TO_PROBE)
    assert.deepEqual(await statusAndCause(), ALARM)
  })

  it('the alarm for members that answers lack ends at once when they come and go', async () => {
    await lacking(LACKING_TO_PROBE)
    await answer({ has: ['temperature_c'] })
    await lacking(1)
    assert.equal((await view()).status, 'Healthy')
  })

  it('the alarm for members that answers lack is decided for each endpoint, and its text names the members of all endpoints', async () => {
    for (let index = 0; index < LACKING_TO_PROBE; index += 1) {
      await lacking(1, { voter: `account-${index % 2}` })
      await answer({ endpoint: '/other', has: [] })
    }
    assert.deepEqual(await statusAndCause(), ALARM)
    await lacking(LACKING_TO_PROBE, { endpoint: '/other', lacks: ['b', 'a'] })
    assert.deepEqual(await statusAndCause(), ['Degraded', 'lacks `temperature_c` (/current); `a`, `b` (/other)'])
  })
})
