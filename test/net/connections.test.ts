import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { request } from 'undici'
import { Mailer } from '../../src/accounts/mailer.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { openHttpClient } from '../../src/net/http-client.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { startMailServer } from '../support/mail-server.ts'
import { useTestNames } from '../support/name-server.ts'
import { type Services, startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/**
 * Names that only our name server knows. If something connects by them, it has used our look-up.
 */
let services: Services
before(async () => {
  await useTestNames({ 'store.example': ['127.0.0.1'], 'upstream.example': ['127.0.0.1'] })
  services = await startServices()
})
after(async () => {
  await services.stop()
})

const named = (url: string): string => {
  const address = new URL(url)
  address.hostname = 'store.example'
  return address.href
}

test('the gateway itself resolves the names of Postgres and Redis', async () => {
  const db = openDatabase(named(services.databaseUrl), log)
  assert.equal((await sql<{ one: number }>`select 1 as one`.execute(db)).rows[0]?.one, 1)
  await db.destroy()
  const redis = openRedis([named(services.redisUrl)], 'blocking', log)
  assert.equal(await redis.ping(), 'PONG')
  await closeRedis(redis)
})

test('a store whose name servers are silent is unreachable, and other stores stay reachable', async () => {
  const slow = openDatabase('postgres://u:p@slow-postgres.example/db', log)
  const waiting = Array.from({ length: 20 }, () =>
    assert.rejects(sql`select 1`.execute(slow), { code: 'DEPENDENCY_UNAVAILABLE' }),
  )
  const redis = openRedis(['redis://slow-redis.example:1'], 'producer', log)
  const db = openDatabase(named(services.databaseUrl), log)
  await sql`select 1`.execute(db)
  await Promise.all(waiting)
  await Promise.all([db.destroy(), slow.destroy(), closeRedis(redis)])
})

test('the mail server is found by our look-up, and one whose name servers are silent cannot be reached', async () => {
  const mail = await startMailServer()
  const mailer = new Mailer({ smtpUrl: named(mail.url), from: 'gateway@example.com' })
  await mailer.send({ to: 'a@example.com', subject: 's', text: 't' })
  await mailer.close()
  await mail.close()
  const silent = new Mailer({ smtpUrl: 'smtp://slow-mail.example', from: 'gateway@example.com' })
  await assert.rejects(silent.send({ to: 'a@example.com', subject: 's', text: 't' }), { command: 'CONN' })
  await silent.close()
})

test('the gateway itself resolves the names of upstreams, and refuses a name that resolves to a private address', async () => {
  const upstream = createServer((_request, response) => response.end('answer')).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const url = `http://upstream.example:${Object(upstream.address()).port}/`
  const open = openHttpClient({ connections: 1, allowPrivate: true })
  assert.equal(await (await request(url, { dispatcher: open })).body.text(), 'answer')
  const guarded = openHttpClient({ connections: 1, allowPrivate: false })
  await assert.rejects(request(url, { dispatcher: guarded }), { code: 'BLOCKED_ADDRESS' })
  await Promise.all([open.close(), guarded.close()])
  upstream.closeAllConnections()
  upstream.close()
})
