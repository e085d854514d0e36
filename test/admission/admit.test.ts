import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { createApiKey } from '../../src/accounts/api-key.ts'
import { admitCall } from '../../src/admission/admit.ts'
import { admitBatch } from '../../src/admission/admit-batch.ts'
import type { Principal } from '../../src/admission/authenticate.ts'
import { PrincipalCache } from '../../src/admission/authenticate.ts'
import { loadProcessConfig } from '../../src/config.ts'
import { type Context, closeContext, openContext } from '../../src/context.ts'
import { createLog } from '../../src/log.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { type Services, startServices } from '../support/services.ts'

const REQUEST = {
  id: 'req_test',
  method: 'GET',
  url: '/v1/call/currency/latest',
  raw: { url: '/v1/call/currency/latest' },
  params: { '*': 'currency/latest' },
  query: {},
  ip: '127.0.0.1',
  headers: { 'x-api-key': createApiKey('test') },
} as unknown as FastifyRequest

const ITEMS = { items: [{ api: 'currency', endpoint: '/latest' }], take: 'all' } as const

describe('a call of an account that changes', () => {
  let services: Services
  let context: Context

  before(async () => {
    services = await startServices()
    const config = loadProcessConfig('web', {
      ...testSecrets(),
      ...{ DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder, PORT: '0' },
    })
    context = await openContext(config, createLog({ level: 'silent', pretty: false }, 'test'), 'web')
    await until(() => context.redis.status === 'ready')
  })
  after(async () => {
    await closeContext(context)
    await services.stop()
  })

  /** Makes the account change again after each of a number of look-ups. */
  async function changing(changes: number) {
    const accountId = randomUUID()
    let lookUps = 0
    const get = async (): Promise<Principal> => {
      lookUps += 1
      await context.redis.set(accountKeys.version(accountId), `v${Math.min(lookUps, changes)}`)
      return {
        ...{ accountId, shareGroup: accountId, mode: 'test', tier: 'pro', version: `v${lookUps - 1}` },
        ...{ keyId: randomUUID(), isTeamKey: false, providerKeys: new Map(), expiresAt: Number.POSITIVE_INFINITY },
        missingForLiveCalls: undefined,
      }
    }
    const principals = Object.assign(new PrincipalCache(Date.now), { get })
    return { deps: { ...context, principals }, lookUps: () => lookUps }
  }

  it('a call of an account that changes several times in a row is looked up again until the look-up has the last change', async () => {
    const { deps } = await changing(4)
    const admitted = await admitCall(deps, REQUEST)
    assert.ok('job' in admitted, JSON.stringify(admitted))
    const batch = await admitBatch((await changing(4)).deps, REQUEST, { ...ITEMS, items: [...ITEMS.items] })
    assert.equal(batch.units.length, 1)
  })

  it('a call of an account that changes all the time is refused after a few look-ups', async () => {
    const { deps, lookUps } = await changing(1_000)
    const refused = await admitCall(deps, REQUEST)
    assert.ok('refusal' in refused)
    assert.equal(Reflect.get(Object(refused.refusal), 'code'), 'DEPENDENCY_UNAVAILABLE')
    assert.ok(lookUps() <= 10, `${lookUps()} look-ups`)
    const batch = admitBatch((await changing(1_000)).deps, REQUEST, { ...ITEMS, items: [...ITEMS.items] })
    await assert.rejects(batch, { code: 'DEPENDENCY_UNAVAILABLE' })
  })
})
