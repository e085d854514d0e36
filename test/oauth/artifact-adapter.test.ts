import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { sql } from 'kysely'
import { loadConfig } from '../../src/config.ts'
import { insertConnection } from '../../src/db/connections.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { ArtifactAdapter, ClientAdapter } from '../../src/oauth/artifact-adapter.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

it('a refresh token whose use stored no access token is good once more, and one whose use did is not', async () => {
  const services = await startServices()
  await migrate(services.databaseUrl)
  const log = createLog({ level: 'silent', pretty: false }, 'web')
  const db = openDatabase(services.databaseUrl, log)
  const redis = openRedis([services.redisUrl], 'producer', log)
  const addresses = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder }
  const deps = { db, redis, log, config: loadConfig({ ...testSecrets(), ...addresses }) }
  const tokens = new ArtifactAdapter('RefreshToken', deps)
  const [userId, grantId] = [randomUUID(), randomUUID()]
  const application = { client_id: 'a', client_name: 'a', redirect_host: '127.0.0.1', resource: 'http://a' }
  const pass = () => sql`update oauth_artifacts set consumed_at = consumed_at - interval '3 seconds'`.execute(db)
  try {
    await insertUser(db, { id: userId, email: 'a@example.com', passwordHash: 'x', signupNetwork: null })
    await insertConnection(db, { id: grantId, user_id: userId, ...application, apis: null, per_month: null }, 10)
    await tokens.upsert('first', { jti: 'first', grantId }, 1_000)
    await tokens.consume('first')
    assert.ok((await tokens.find('first'))?.consumed, 'the request that uses it may still be under way')
    await assert.rejects(tokens.consume('first'), { error: 'invalid_grant' })
    await pass()
    assert.equal((await tokens.find('first'))?.consumed, undefined)
    await tokens.consume('first')
    await tokens.upsert('second', { jti: 'second', grantId }, 2_000)
    await pass()
    assert.equal(
      (await tokens.find('first'))?.consumed,
      undefined,
      'the access token is what the application waits for',
    )
    await new ArtifactAdapter('AccessToken', deps).upsert('access', { jti: 'access', grantId }, 3_600)
    assert.ok((await tokens.find('first'))?.consumed)
    await assert.rejects(tokens.consume('first'), { error: 'invalid_grant' })
    assert.equal((await tokens.find('second'))?.consumed, undefined)
  } finally {
    await closeRedis(redis)
    await db.destroy()
    await services.stop()
  }
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
