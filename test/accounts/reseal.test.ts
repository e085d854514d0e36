import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { countOutdated, resealAll, SEALED_TABLES } from '../../src/accounts/reseal.ts'
import {
  artifactRecord,
  clientRecord,
  operatorKeyRecord,
  providerKeyRecord,
} from '../../src/accounts/sealed-records.ts'
import { open, seal } from '../../src/accounts/secret-box.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { insertClient, upsertArtifact } from '../../src/db/oauth-artifacts.ts'
import { findProviderKeyOf, saveProviderKey } from '../../src/db/provider-keys.ts'
import { listUpstreamSettings, saveUpstreamSettings } from '../../src/db/upstream-settings.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { type Services, startServices } from '../support/services.ts'

const secret = (id: string) => ({ id, bytes: randomBytes(32) })

describe('stored secrets', () => {
  const [old, next] = [secret('old'), secret('next')]
  const userId = randomUUID()
  let services: Services
  let db: Db

  before(async () => {
    services = await startServices()
    await migrate(services.databaseUrl)
    db = openDatabase(services.databaseUrl, createLog({ level: 'silent', pretty: false }, 'probe'))
    await insertUser(db, { id: userId, email: 'a@example.com', passwordHash: 'x', signupNetwork: null })
  })
  after(async () => {
    await db.destroy()
    await services.stop()
  })

  const saveKey = (slug: string) => {
    const { secretId, bytes } = seal([old], providerKeyRecord(userId, slug), slug)
    const names = { id: randomUUID(), slug, cap_scope: slug, masked: slug }
    return saveProviderKey(db, { userId }, { ...names, secret_id: secretId, sealed: bytes })
  }

  it('stored secrets of every table are sealed by the current encryption key, more than a batch of them, and opened without the earlier key', async () => {
    const idHash = randomBytes(32)
    const operatorKey = seal([old], operatorKeyRecord('news'), 'operator')
    await saveUpstreamSettings(db, 'news', { enabled: null, tierRequired: null, caps: null, key: operatorKey })
    const client = seal([old], clientRecord('app'), 'client')
    await insertClient(db, { id: 'app', secretId: client.secretId, sealed: client.bytes })
    const { secretId, bytes } = seal([old], artifactRecord('Grant', idHash), 'grant')
    const artifact = { kind: 'Grant', idHash, uidHash: null, connectionId: null, secretId, sealed: bytes }
    await upsertArtifact(db, { ...artifact, seconds: 60 })
    const slugs = Array.from({ length: 201 }, (_, index) => `api-${index}`)
    for (const slug of slugs) await saveKey(slug)

    assert.equal(await countOutdated(db, [next, old], 1_000), 204)
    assert.equal(await countOutdated(db, [next, old], 3), 3)
    assert.deepEqual(await resealAll(db, [next, old]), { resealed: 204, unreadable: 0 })
    assert.equal(await countOutdated(db, [next, old], 1_000), 0)
    assert.deepEqual(await resealAll(db, [next, old]), { resealed: 0, unreadable: 0 })

    const [settings] = await listUpstreamSettings(db)
    const [key] = await Promise.all([findProviderKeyOf(db, { userId }, 'api-200')])
    const stored = { secretId: settings?.key_secret_id ?? '', bytes: settings?.key_sealed ?? Buffer.alloc(0) }
    assert.equal(open([next], operatorKeyRecord('news'), stored), 'operator')
    const { secret_id = '', sealed = Buffer.alloc(0) } = key ?? {}
    assert.equal(open([next], providerKeyRecord(userId, 'api-200'), { secretId: secret_id, bytes: sealed }), 'api-200')
  })

  it('stored secrets that cannot be opened stay unchanged, are counted, and do not keep other secrets from being resealed', async () => {
    const damaged = await saveKey('api-0')
    await sql`update provider_keys set sealed = ${randomBytes(60)} where id = ${damaged.id}`.execute(db)
    await saveKey('api-1')
    assert.deepEqual(await resealAll(db, [next, old]), { resealed: 1, unreadable: 1 })
    assert.equal(await countOutdated(db, [next, old], 1_000), 1)
  })

  it('stored secrets are only in tables that are resealed', async () => {
    const { rows } = await sql<{ table_name: string }>`select table_name from information_schema.columns
      where table_schema = current_schema() and column_name like '%sealed'`.execute(db)
    assert.deepEqual(rows.map(({ table_name }) => table_name).sort(), SEALED_TABLES.map(({ name }) => name).sort())
  })
})
