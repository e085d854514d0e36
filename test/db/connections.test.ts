import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { sql } from 'kysely'
import { insertConnection, listConnections } from '../../src/db/connections.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { deleteOldArtifacts, upsertArtifact } from '../../src/db/oauth-artifacts.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { startServices } from '../support/services.ts'

it('a connection ends when no token of it is good any more, and not before its first one is made', async (t) => {
  const services = await startServices()
  const db = openDatabase(services.databaseUrl, createLog({ level: 'silent', pretty: false }, 'test'))
  t.after(async () => {
    await db.destroy()
    await services.stop()
  })
  await migrate(services.databaseUrl)
  const userId = randomUUID()
  await insertUser(db, { id: userId, email: 'ann@example.com', passwordHash: 'x', signupNetwork: null })
  const connect = async (client: string) => {
    const id = randomUUID()
    const application = { client_id: client, client_name: client, redirect_host: '127.0.0.1', resource: 'http://a' }
    assert.ok(await insertConnection(db, { id, user_id: userId, ...application, apis: null, per_month: null }, 10))
    return id
  }
  const addToken = async (connectionId: string, expiresInMs: number) =>
    await upsertArtifact(db, {
      ...{ kind: 'RefreshToken', idHash: randomBytes(32), uidHash: null, connectionId, secretId: 'x' },
      ...{ sealed: randomBytes(8), expiresAt: new Date(Date.now() + expiresInMs) },
    })
  const [used, forgotten] = [await connect('used'), await connect('forgotten')]
  await addToken(used, 60_000)
  await addToken(forgotten, -1_000)
  await sql`update connections set created_at = now() - interval '2 hours'`.execute(db)
  await connect('just made')
  await deleteOldArtifacts(db)
  const names = (await listConnections(db, userId)).map(({ client_name }) => client_name).sort()
  assert.deepEqual(names, ['just made', 'used'])
})
