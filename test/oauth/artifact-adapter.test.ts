import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { resealAll } from '../../src/accounts/reseal.ts'
import { loadConfig } from '../../src/config.ts'
import { insertConnection } from '../../src/db/connections.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { ArtifactAdapter, ClientAdapter } from '../../src/oauth/artifact-adapter.ts'
import { withTokenUse } from '../../src/oauth/token-use.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { testSecrets } from '../support/gateway.ts'
import { type Services, startServices } from '../support/services.ts'

describe('a refresh token', () => {
  let services: Services
  let db: Db
  let redis: RedisConnection
  let [tokens, access, codes]: ArtifactAdapter[] = []
  const grantId = randomUUID()

  before(async () => {
    services = await startServices()
    const log = createLog({ level: 'silent', pretty: false }, 'web')
    db = openDatabase(services.databaseUrl, log)
    redis = openRedis([services.redisUrl], 'producer', log)
    const addresses = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder }
    const deps = { db, redis, log, config: loadConfig({ ...testSecrets(), ...addresses }) }
    tokens = new ArtifactAdapter('RefreshToken', deps)
    access = new ArtifactAdapter('AccessToken', deps)
    codes = new ArtifactAdapter('AuthorizationCode', deps)
    const userId = randomUUID()
    const application = { client_id: 'a', client_name: 'a', redirect_host: '127.0.0.1', resource: 'http://a' }
    await insertUser(db, { id: userId, email: 'a@example.com', passwordHash: 'x', signupNetwork: null })
    await insertConnection(db, { id: grantId, user_id: userId, ...application, apis: null, per_month: null }, 10)
  })
  after(async () => {
    await closeRedis(redis)
    await db.destroy()
    await services.stop()
  })

  const isReplay = async (id: string) => (await tokens?.find(id))?.consumed !== undefined
  const store = (adapter: ArtifactAdapter | undefined, id: string) => adapter?.upsert(id, { jti: id, grantId }, 3_600)
  /**
   * Uses a token as the library does: it stores the successor, then the access token, with which
   * the use counts.
   */
  const use = (id: string, successor: string) =>
    withTokenUse(async () => {
      await tokens?.consume(id)
      await store(tokens, successor)
      await store(access, `access token beside ${successor}`)
    })

  it('a refresh token is a replay once the successor of its successor was used, and not before, at any age', async () => {
    await store(tokens, 'first')
    await use('first', 'second')
    await use('first', 'other second')
    await use('second', 'third')
    await sql`update oauth_artifacts set expires_at = expires_at - interval '10 minutes'`.execute(db)
    assert.equal(await isReplay('first'), false)
    await use('first', 'yet another second')
    await use('third', 'fourth')
    const all = ['first', 'second', 'third', 'fourth', 'other second', 'yet another second']
    assert.deepEqual(await Promise.all(all.map(isReplay)), [true, false, false, false, false, false])
  })

  it('a refresh token of one process is no replay because of what another process does with a successor of its own', async () => {
    await store(tokens, 'shared')
    await use('shared', 'of one process')
    await use('shared', 'of another')
    await use('of another', 'of another, next')
    await use('of another, next', 'of another, third')
    assert.deepEqual([await isReplay('shared'), await isReplay('of one process')], [true, false])
  })

  it('a refresh token whose use stored no access token counts as unused, because nobody has received a new token', async () => {
    await store(tokens, 'old')
    await use('old', 'middle')
    await use('middle', 'young')
    await withTokenUse(async () => {
      await tokens?.consume('young')
      await store(tokens, 'of a node that was killed')
    })
    assert.equal(await isReplay('old'), false)
    await use('young', 'youngest')
    assert.equal(await isReplay('old'), true)
  })

  it('a refresh token that a node of the version before has used is good here, and its successors are followed', async () => {
    await store(tokens, 'upgraded')
    await sql`update oauth_artifacts set consumed_at = now() - interval '1 hour', use_id = gen_random_uuid()
      where kind = 'RefreshToken'`.execute(db)
    assert.equal(await isReplay('upgraded'), false)
    await use('upgraded', 'upgraded, second')
    await use('upgraded, second', 'upgraded, third')
    await use('upgraded, third', 'upgraded, fourth')
    assert.equal(await isReplay('upgraded'), true)
  })

  it('an access token is stored for as long as its application is told, whatever the clock of the node says', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 7_200_000 })
    await store(access, 'of a slow clock')
    assert.ok(await access?.find('of a slow clock'))
  })

  it('an authorization code is valid once, and its second use is a replay', async () => {
    await codes?.upsert('code', { jti: 'code', grantId }, 60)
    await codes?.consume('code')
    await assert.rejects(codes?.consume('code') ?? assert.fail(), { error: 'invalid_grant' })
    assert.notEqual((await codes?.find('code'))?.consumed, undefined)
  })
})

it('an application and its tokens survive a new ENCRYPTION_KEY if they were resealed before the old key was removed, and are unknown otherwise', async () => {
  const services = await startServices()
  const [old, next] = [0, 1].map(() => randomBytes(32).toString('base64url'))
  const log = createLog({ level: 'silent', pretty: false }, 'web')
  const db = openDatabase(services.databaseUrl, log)
  const redis = openRedis([services.redisUrl], 'producer', log)
  const withSecrets = (...secrets: (string | undefined)[]) => {
    const addresses = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder }
    const config = loadConfig({ ...testSecrets(), ...addresses, ENCRYPTION_KEY: secrets.join() })
    const deps = { config, db, redis, log }
    return {
      encryption: config.secrets.encryption,
      clients: new ClientAdapter(deps),
      tokens: new ArtifactAdapter('RefreshToken', deps),
    }
  }
  try {
    const before = withSecrets(old)
    const store = async (id: string) => {
      await before.clients.upsert(id, { client_id: id })
      await before.tokens.upsert(id, { jti: id })
    }
    await store('kept')
    const between = withSecrets(next, old)
    assert.equal((await between.clients.find('kept'))?.client_id, 'kept')
    await resealAll(db, between.encryption)
    await store('late')

    const after = withSecrets(next)
    assert.equal((await after.clients.find('kept'))?.client_id, 'kept')
    assert.equal((await after.tokens.find('kept'))?.jti, 'kept')
    assert.deepEqual([await after.clients.find('late'), await after.tokens.find('late')], [undefined, undefined])
  } finally {
    await closeRedis(redis)
    await db.destroy()
    await services.stop()
  }
})
