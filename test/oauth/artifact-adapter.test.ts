import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createLog } from '../../src/log.ts'
import { ArtifactAdapter, ClientAdapter } from '../../src/oauth/artifact-adapter.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

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
