import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { loadConfig } from '../../src/config.ts'
import { insertConnection } from '../../src/db/connections.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { upsertOfUse } from '../../src/db/oauth-artifacts.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { ArtifactAdapter, ClientAdapter } from '../../src/oauth/artifact-adapter.ts'
import { currentTokenUse, withTokenUse } from '../../src/oauth/token-use.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { type Services, startServices } from '../support/services.ts'

describe('a refresh token', () => {
  let services: Services
  let db: Db
  let redis: RedisConnection
  let [tokens, access]: ArtifactAdapter[] = []
  const grantId = randomUUID()

  before(async () => {
    services = await startServices()
    await migrate(services.databaseUrl)
    const log = createLog({ level: 'silent', pretty: false }, 'web')
    db = openDatabase(services.databaseUrl, log)
    redis = openRedis([services.redisUrl], 'producer', log)
    const addresses = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder }
    const deps = { db, redis, log, config: loadConfig({ ...testSecrets(), ...addresses }) }
    tokens = new ArtifactAdapter('RefreshToken', deps)
    access = new ArtifactAdapter('AccessToken', deps)
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

  const store = (adapter: ArtifactAdapter | undefined, id: string) => adapter?.upsert(id, { jti: id, grantId }, 3_600)
  const isReplay = async (id: string) => (await tokens?.find(id))?.consumed !== undefined
  const refused = { error: 'invalid_grant' }

  it('a refresh token is good again at once while no use of it has stored its access token, whatever else was stored', async () => {
    await store(tokens, 'killed')
    await withTokenUse(async () => await tokens?.consume('killed'))
    await withTokenUse(async () => {
      await tokens?.consume('killed')
      await store(tokens, 'successor of nobody')
    })
    assert.equal(await isReplay('killed'), false)
    await withTokenUse(async () => {
      await tokens?.consume('killed')
      await store(access, 'its access token')
    })
    await withTokenUse(async () => await assert.rejects(tokens?.consume('killed') ?? assert.fail(), refused))
  })

  it('a refresh token that two requests use at once gives tokens to the one that began last, and is no replay', async () => {
    await store(tokens, 'shared')
    const begun = Promise.withResolvers<void>()
    const overtaken = Promise.withResolvers<void>()
    const first = withTokenUse(async () => {
      await tokens?.consume('shared')
      begun.resolve()
      await overtaken.promise
      await store(access, 'of the first')
    })
    await begun.promise
    await withTokenUse(async () => {
      await tokens?.consume('shared')
      overtaken.resolve()
      await assert.rejects(first, refused)
      await store(access, 'of the second')
    })
    assert.equal(await access?.find('of the first'), undefined)
    assert.equal((await access?.find('of the second'))?.jti, 'of the second')
    assert.equal(await isReplay('shared'), false)
  })

  it('a refresh token whose use counted is a replay half a minute later, whatever became of its access token', async () => {
    await store(tokens, 'old')
    await withTokenUse(async () => {
      await tokens?.consume('old')
      await store(access, 'given back')
    })
    assert.equal(await isReplay('old'), false)
    await sql`update oauth_artifacts set consumed_at = consumed_at - interval '31 seconds'`.execute(db)
    assert.equal(await isReplay('old'), true)
    await access?.destroy('given back')
    assert.equal(await isReplay('old'), true)
  })

  it('a refresh token that a node of the version before has used is used, also where a use of ours had begun', async () => {
    await store(tokens, 'upgraded')
    await withTokenUse(async () => await tokens?.consume('upgraded'))
    await sql`update oauth_artifacts set consumed_at = now() - interval '31 seconds' where consumed_at is null`.execute(
      db,
    )
    assert.equal(await isReplay('upgraded'), true)
    await withTokenUse(async () => await assert.rejects(tokens?.consume('upgraded') ?? assert.fail(), refused))
  })

  it('a refresh token that a node of the version before uses after a use of ours had begun gives no tokens here', async () => {
    await store(tokens, 'shared with the version before')
    await withTokenUse(async () => {
      await tokens?.consume('shared with the version before')
      await sql`update oauth_artifacts set consumed_at = now() where consumed_at is null and kind = 'RefreshToken'`.execute(
        db,
      )
      await assert.rejects(store(access, 'of ours') ?? assert.fail(), refused)
    })
    assert.equal(await access?.find('of ours'), undefined)
  })

  it('a refresh token counts for its use also where its tokens are stored again while the first try is under way', async () => {
    await store(tokens, 'tried twice')
    await withTokenUse(async () => {
      await tokens?.consume('tried twice')
      const use = currentTokenUse() ?? assert.fail()
      const idHash = randomBytes(32)
      const artifact = {
        ...{ kind: 'AccessToken', idHash, uidHash: null, connectionId: grantId, secretId: 'x' },
        ...{ sealed: randomBytes(8), expiresAt: new Date(Date.now() + 60_000) },
      }
      const waiting = sql`select from pg_locks where not granted`
      const again = await db.transaction().execute(async (transaction) => {
        assert.equal(await upsertOfUse(transaction, artifact, use), true)
        const again = upsertOfUse(db, artifact, use)
        await until(async () => (await waiting.execute(db)).rows.length > 0)
        return { again }
      })
      assert.equal(await again.again, true)
      assert.equal(await upsertOfUse(db, artifact, use), true)
    })
  })
})

it('an application and its tokens survive a replaced ENCRYPTION_KEY when they are used before the old one is taken out, and are unknown else', async () => {
  const services = await startServices()
  await migrate(services.databaseUrl)
  const [old, next] = [0, 1].map(() => randomBytes(32).toString('base64url'))
  const log = createLog({ level: 'silent', pretty: false }, 'web')
  const db = openDatabase(services.databaseUrl, log)
  const redis = openRedis([services.redisUrl], 'producer', log)
  const withSecrets = (...secrets: (string | undefined)[]) => {
    const addresses = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder }
    const config = loadConfig({ ...testSecrets(), ...addresses, ENCRYPTION_KEY: secrets.join() })
    const deps = { config, db, redis, log }
    return { clients: new ClientAdapter(deps), tokens: new ArtifactAdapter('RefreshToken', deps) }
  }
  try {
    const before = withSecrets(old)
    for (const id of ['used', 'idle']) {
      await before.clients.upsert(id, { client_id: id })
      await before.tokens.upsert(id, { jti: id })
    }
    const between = withSecrets(next, old)
    assert.equal((await between.clients.find('used'))?.client_id, 'used')
    assert.equal((await between.tokens.find('used'))?.jti, 'used')

    const after = withSecrets(next)
    await until(async () => (await after.clients.find('used'))?.client_id === 'used')
    await until(async () => (await after.tokens.find('used'))?.jti === 'used')
    assert.deepEqual([await after.clients.find('idle'), await after.tokens.find('idle')], [undefined, undefined])
  } finally {
    await closeRedis(redis)
    await db.destroy()
    await services.stop()
  }
})
