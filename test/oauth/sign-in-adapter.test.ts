import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import type Provider from 'oidc-provider'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { loadConfig } from '../../src/config.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { createAuthorizationServer } from '../../src/oauth/authorization-server.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { loadedScripts } from '../../src/redis/script.ts'
import { testSecrets } from '../support/gateway.ts'
import { type App, authorizeUrl, registerApp } from '../support/oauth-client.ts'
import { type Services, startServices } from '../support/services.ts'

describe('a sign-in that no user has finished', () => {
  let services: Services
  let db: Db
  let redis: RedisConnection
  let server: Server
  let provider: Provider
  let url = ''
  let app: App

  before(async () => {
    services = await startServices()
    let handle: ReturnType<Provider['callback']> | undefined
    server = createServer((request, response) => void handle?.(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const addresses = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder }
    const config = loadConfig({ ...testSecrets(), ...addresses, BASE_URL: url, LOG_LEVEL: 'silent' })
    const log = createLog(config.log, 'web')
    db = openDatabase(config.databaseUrl, log)
    redis = openRedis(config.redisUrls, 'producer', log)
    await once(redis, 'ready')
    const pages = { errorPage: (title: string, text: string) => `${title}: ${text}` }
    const documents = { fetch, beginFetch: async () => undefined }
    const catalog = await loadCatalog(new Map())
    provider = createAuthorizationServer({ config, db, redis, log, catalog, ...documents, ...pages })
    handle = provider.callback()
    app = await registerApp(url)
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await closeRedis(redis)
    await db.destroy()
    await services.stop()
  })

  /**
   * Begins a sign-in as a client with this address.
   * @returns its id
   */
  const begin = async (address: string): Promise<string> => {
    const headers = { 'x-forwarded-for': address }
    const response = await fetch(authorizeUrl(url, app), { headers, redirect: 'manual' })
    assert.equal(response.status, 303, await response.text())
    return (response.headers.get('location') ?? '').replace('/connect/', '')
  }
  const isKept = async (id: string): Promise<boolean> => (await provider.Interaction.find(id)) !== undefined
  const rows = async () =>
    Number((await sql<{ count: string }>`select count(*) from oauth_artifacts`.execute(db)).rows[0]?.count)

  it('a sign-in that no user has finished leaves nothing in Postgres, and is gone after half an hour', async () => {
    assert.ok(await isKept(await begin('192.0.2.1')))
    assert.equal(await rows(), 0)
    for (const key of await redis.keys('agw:{sign-ins}*')) {
      const lifeMs = await redis.pttl(key)
      assert.ok(lifeMs > 1_700_000 && lifeMs <= 1_800_000, `${key} lives ${lifeMs} ms`)
    }
  })

  it('a sign-in that no user has finished goes when its client has begun twenty more, and stays whatever other clients begin', async () => {
    const other = await begin('192.0.2.2')
    const ids: string[] = []
    for (let count = 0; count < 25; count += 1) ids.push(await begin('192.0.2.3'))
    const kept: boolean[] = []
    for (const id of ids) kept.push(await isKept(id))
    assert.deepEqual(kept, [...Array(5).fill(false), ...Array(20).fill(true)])
    assert.ok(await isKept(other))
    // One subscriber has a /48.
    for (let count = 0; count < 25; count += 1) await begin(`2001:db8:0:${count}::1`)
    assert.equal(await redis.zcard(keys.signInsOf('32.1.13.184.0.0/48')), 20)
    assert.equal(await rows(), 0)
  })

  it('a sign-in that no user has finished goes when it is the oldest and all clients have too many', async () => {
    const [path = ''] = [...loadedScripts.keys()].filter((each) => each.endsWith('keep-sign-in.lua'))
    const { script } = loadedScripts.get(path) ?? assert.fail()
    const all = keys.signIn('all')
    const keep = (name: string) =>
      script.run(redis, [keys.signIn(name), keys.signInsOf(name), all], ['', 'sealed', 60_000, 2, 3])
    for (const name of ['a', 'b', 'c', 'd']) await keep(name)
    assert.deepEqual(
      await redis.zrange(all, 0, '-1'),
      ['b', 'c', 'd'].map((name) => keys.signIn(name)),
    )
    assert.equal(await redis.exists(keys.signIn('a')), 0)
    for (const name of ['b', 'c', 'd']) assert.equal(await redis.exists(keys.signIn(name)), 1, name)
  })
})
