import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, it } from 'node:test'
import { sql } from 'kysely'
import { keyScope, maskKey } from '../../src/accounts/provider-key.ts'
import { providerKeyRecord } from '../../src/accounts/sealed-records.ts'
import { seal } from '../../src/accounts/secret-box.ts'
import { openDatabase } from '../../src/db/database.ts'
import { saveProviderKey } from '../../src/db/provider-keys.ts'
import { insertUser } from '../../src/db/users.ts'
import { GatewayError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { ProviderKeys } from '../../workers/upstream/provider-keys.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')
const services = await startServices()
const db = openDatabase(services.databaseUrl, log)
const secrets = [{ id: 'first', bytes: randomBytes(32) }]
after(async () => {
  await db.destroy()
  await services.stop()
})

const insertOwner = async (): Promise<string> => {
  const id = randomUUID()
  await insertUser(db, { id, email: `${id}@example.com`, passwordHash: '', signupNetwork: null })
  return id
}

async function save(owner: { userId: string } | { teamId: string }): Promise<string> {
  const record = providerKeyRecord(Object.values(owner)[0] ?? '', 'news')
  const { secretId: secret_id, bytes: sealed } = seal(secrets, record, 'its-key')
  const cap_scope = keyScope(Buffer.alloc(32), 'news', 'its-key')
  const row = { id: randomUUID(), slug: 'news', secret_id, sealed, cap_scope, masked: maskKey('its-key') }
  return (await saveProviderKey(db, owner, row)).id
}

it('a provider key is read once if many calls need it at the same time', async () => {
  const userId = await insertOwner()
  const id = await save({ userId })
  const ownDb = openDatabase(services.databaseUrl, log)
  try {
    const keys = new ProviderKeys(ownDb, secrets, log)
    const count = async () =>
      (await sql<{ pid: number }>`select pid from pg_stat_activity where datname = current_database()`.execute(db)).rows
        .length
    const before = await count()
    assert.deepEqual(
      await Promise.all(Array.from({ length: 20 }, () => keys.of(id, userId))),
      Array(20).fill('its-key'),
    )
    // Each statement at one time has a connection of its own, which stays open for a while.
    assert.equal((await count()) - before, 1)
  } finally {
    await ownDb.destroy()
  }
})

it('nobody else can use the provider key of an account, and the key of a team goes with the team to its next owner', async () => {
  const [first, second] = [await insertOwner(), await insertOwner()]
  const teamId = randomUUID()
  await db.insertInto('teams').values({ id: teamId, name: 'A team', owner_id: first }).execute()
  const id = await save({ teamId })
  const keys = new ProviderKeys(db, secrets, log)
  const isInvalid = (error: unknown) => error instanceof GatewayError && error.code === 'PROVIDER_KEY_INVALID'
  assert.equal(await keys.of(id, first), 'its-key')
  await assert.rejects(keys.of(id, second), isInvalid)
  await db.updateTable('teams').set({ owner_id: second }).where('id', '=', teamId).execute()
  assert.equal(await keys.of(id, second), 'its-key')
  await assert.rejects(
    keys.of(randomUUID(), second),
    (error) => (error as GatewayError).code === 'PROVIDER_KEY_REQUIRED',
  )
})

it('a call gets its provider key although other calls need as many keys as a worker stores', async () => {
  const userId = await insertOwner()
  const keys = new ProviderKeys(db, secrets, log)
  const key = keys.of(await save({ userId }), userId)
  const others = Promise.allSettled(Array.from({ length: 1_000 }, () => keys.of(randomUUID(), userId)))
  assert.equal(await key, 'its-key')
  await others
})
