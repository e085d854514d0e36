import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, it } from 'node:test'
import { sql } from 'kysely'
import { insertConnection, listConnections } from '../../src/db/connections.ts'
import { openDatabase } from '../../src/db/database.ts'
import { insertClient, upsertArtifact } from '../../src/db/oauth-artifacts.ts'
import { deleteOldRows } from '../../src/db/old-rows.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')
const config = { auditDays: 400 }
const services = await startServices()
const db = openDatabase(services.databaseUrl, log)
after(async () => {
  await db.destroy()
  await services.stop()
})

async function connectionNames(): Promise<string[]> {
  const rows = await db.selectFrom('connections').select('client_name').orderBy('client_name').execute()
  return rows.map(({ client_name }) => client_name)
}

it('a connection ends when none of its tokens is valid, and is deleted a month later', async () => {
  const userId = randomUUID()
  await insertUser(db, { id: userId, email: 'ann@example.com', passwordHash: 'x', signupNetwork: null })
  const connect = async (client: string) => {
    const id = randomUUID()
    const application = { client_id: client, client_name: client, redirect_host: '127.0.0.1', resource: 'http://a' }
    assert.ok(await insertConnection(db, { id, user_id: userId, ...application, apis: null, per_month: null }, 10))
    return id
  }
  const addToken = async (connectionId: string, seconds: number) =>
    await upsertArtifact(db, {
      ...{ kind: 'RefreshToken', idHash: randomBytes(32), uidHash: null, connectionId, secretId: 'x' },
      ...{ sealed: randomBytes(8), seconds },
    })
  const [used, forgotten] = [await connect('used'), await connect('forgotten')]
  await addToken(used, 60)
  await addToken(forgotten, -1)
  await sql`update connections set created_at = now() - interval '2 hours'`.execute(db)
  await connect('just made')
  await deleteOldRows({ db, config, log })
  const names = (await listConnections(db, userId)).map(({ client_name }) => client_name).sort()
  assert.deepEqual(names, ['just made', 'used'])
  assert.deepEqual(await connectionNames(), ['forgotten', 'just made', 'used'])
  await sql`update connections set revoked_at = now() - interval '31 days' where client_name = 'forgotten'`.execute(db)
  await deleteOldRows({ db, config, log })
  assert.deepEqual(await connectionNames(), ['just made', 'used'])
})

it('old rows of one table that cannot be deleted hold up no other, and the log names the table', async () => {
  const failed: unknown[] = []
  // More old rows than a statement deletes, and young rows.
  await sql`insert into usage_batches (id, written_at)
    select gen_random_uuid(), now() - make_interval(days => 6 + n % 2 * 2) from generate_series(1, 5000) n`.execute(db)
  await sql`alter table sessions rename to sessions_elsewhere`.execute(db)
  await addClient('old')
  await deleteOldRows({ db, config, log: { warn: (members: object) => void failed.push(members) } })
  await sql`alter table sessions_elsewhere rename to sessions`.execute(db)
  assert.deepEqual(
    failed.map((members) => (members as { table: string }).table),
    ['sessions'],
  )
  const { rows } = await sql<{ count: number; days: number }>`
    select count(*)::int as count, max(extract(day from now() - written_at))::int as days from usage_batches`.execute(
    db,
  )
  assert.deepEqual(rows, [{ count: 2500, days: 6 }])
  assert.deepEqual(await db.selectFrom('oauth_clients').select('id').execute(), [])
})

it('unused applications are deleted without a look through all connections for each of them', async (t) => {
  const userId = randomUUID()
  await insertUser(db, { id: userId, email: 'bob@example.com', passwordHash: 'x', signupNetwork: null })
  t.after(() => db.deleteFrom('users').where('id', '=', userId).execute())
  await db.deleteFrom('connections').execute()
  // If many accounts have let an application in, the planner thinks that any look finds a row at
  // once.
  await addClient('popular')
  await sql`insert into connections (id, user_id, client_id, client_name, redirect_host, resource)
    select gen_random_uuid(), ${userId}, 'popular', 'popular', 'a', 'http://a' from generate_series(1, 3000)`.execute(
    db,
  )
  await sql`insert into oauth_clients (id, secret_id, sealed, last_used_at)
    select 'unused ' || n, 'x', 'x', now() - interval '8 days' from generate_series(1, 3000) n`.execute(db)
  await sql`analyze oauth_clients, connections`.execute(db)
  const read = await rowsReadByCleaning()
  assert.deepEqual(await db.selectFrom('oauth_clients').select('id').execute(), [{ id: 'popular' }])
  assert.ok(read('connections') < 30 * 3000, `${read('connections')} rows`)
})

it('usage is kept for 400 days, and so are refusals', async (t) => {
  await addUsage(3000)
  t.after(() => sql`truncate usage_daily, refusals_daily`.execute(db))
  await deleteOldRows({ db, config, log })
  for (const table of ['usage_daily', 'refusals_daily'] as const) {
    const { rows } = await sql<{ age: number; rows: number }>`select (now() at time zone 'UTC')::date - day as age,
      count(*)::int as rows from ${sql.table(table)} group by 1`.execute(db)
    assert.deepEqual(rows, [{ age: 400, rows: 3000 }], table)
  }
})

it('sessions, keys, usage and batches of it that are not old are not read by a clean-up', async (t) => {
  const userId = randomUUID()
  await insertUser(db, { id: userId, email: 'cid@example.com', passwordHash: 'x', signupNetwork: null })
  t.after(() => db.deleteFrom('users').where('id', '=', userId).execute())
  await sql`insert into usage_batches (id) select gen_random_uuid() from generate_series(1, 5000)`.execute(db)
  await sql`insert into sessions (id, user_id, expires_at)
    select gen_random_uuid(), ${userId}, now() from generate_series(1, 5000)`.execute(db)
  // Some rows have ended, but none of them long ago.
  await sql`insert into api_keys (id, user_id, environment, key_hash, last_four, revoked_at)
    select gen_random_uuid(), ${userId}, 'live', uuid_send(gen_random_uuid()), 'abcd', case when n % 10 = 0 then now() end
      from generate_series(1, 5000) n`.execute(db)
  await addUsage(5000)
  t.after(() => sql`truncate usage_daily, refusals_daily`.execute(db))
  await deleteOldRows({ db, config, log })
  await sql`vacuum analyze usage_batches, sessions, api_keys, usage_daily, refusals_daily`.execute(db)
  const read = await rowsReadByCleaning()
  const tables = ['usage_batches', 'sessions', 'api_keys', 'usage_daily', 'refusals_daily']
  assert.deepEqual(tables.map(read), [0, 0, 0, 0, 0])
})

/** Rows of usage and as many refusals: of 400 days ago, and of the day before. */
async function addUsage(rows: number): Promise<void> {
  for (const table of ['usage_daily', 'refusals_daily'] as const) {
    await sql`insert into ${sql.table(table)} (day, user_id, key, slug, status, mode, calls)
      select (now() at time zone 'UTC')::date - 400 - n % 2, gen_random_uuid(), 'session', 'weather', 200, 'live', 1
        from generate_series(1, ${rows * 2}) n`.execute(db)
  }
}

/** How many rows of each table a clean-up reads. */
async function rowsReadByCleaning(): Promise<(table: string) => number> {
  return await db.connection().execute(async (connection) => {
    const count = async () => {
      await sql`select pg_stat_force_next_flush()`.execute(connection)
      const { rows } = await sql<{ table: string; read: string }>`
        select relname as table, seq_tup_read + coalesce(idx_tup_fetch, 0) as read from pg_stat_user_tables`.execute(
        connection,
      )
      return new Map(rows.map(({ table, read }) => [table, Number(read)]))
    }
    const before = await count()
    await deleteOldRows({
      db: connection,
      config,
      log: { warn: (members: object) => assert.fail(JSON.stringify(members)) },
    })
    const after = await count()
    return (table) => (after.get(table) ?? Number.NaN) - (before.get(table) ?? Number.NaN)
  })
}

async function addClient(id: string): Promise<void> {
  await insertClient(db, { id, secretId: 'x', sealed: randomBytes(8) })
  await sql`update oauth_clients set last_used_at = now() - interval '8 days' where id = ${id}`.execute(db)
}

it('records of changes by operators are kept for AUDIT_DAYS days', async () => {
  const add = async (subject: string, days: number) =>
    await sql`insert into audit_log (at, actor, action, subject) values (now() - make_interval(days => ${days}), 'a', 'b', ${subject})`.execute(
      db,
    )
  await add('old', 31)
  await add('young', 29)
  await deleteOldRows({ db, config, log })
  const subjects = async () =>
    (await db.selectFrom('audit_log').select('subject').orderBy('subject').execute()).map((row) => row.subject)
  assert.deepEqual(await subjects(), ['old', 'young'])
  await deleteOldRows({ db, config: { auditDays: 30 }, log })
  assert.deepEqual(await subjects(), ['young'])
})
