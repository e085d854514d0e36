import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { PatientTimer } from '../../src/async/patient-timer.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { sqlState } from '../../src/db/postgres-errors.ts'
import { GatewayError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { until } from '../support/gateway.ts'
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts'
import { type Services, startServices } from '../support/services.ts'
import { standStill } from '../support/stand-still.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

let services: Services
let proxy: PostgresProxy
let db: Db

before(async () => {
  services = await startServices()
})
after(() => services.stop())
beforeEach(async () => {
  proxy = await startPostgresProxy(services.databaseUrl)
  db = openDatabase(proxy.url, log, { connectionsMax: 2 })
})
afterEach(async () => {
  await db.destroy()
  await proxy.close()
})

const isUnavailable = (error: unknown): boolean =>
  error instanceof GatewayError && error.code === 'DEPENDENCY_UNAVAILABLE' && error.cause instanceof Error

/**
 * Repeats a query while no answer comes in the time that the pool waits, as happens on a busy
 * machine. It throws the errors of Postgres.
 */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const isLate = isUnavailable(error) && sqlState((error as GatewayError).cause) === undefined
    if (!isLate) throw error
    return await answered(ask)
  }
}

const selectOne = () => sql<{ one: number }>`select 1 as one`.execute(db)

async function limitsOf(client: Db): Promise<string[]> {
  const { rows } = await sql<{ statement: string; idle: string }>`
    select current_setting('statement_timeout') as statement,
           current_setting('idle_in_transaction_session_timeout') as idle`.execute(client)
  return [rows[0]?.statement ?? '', rows[0]?.idle ?? '']
}

describe('a connection that breaks while a query is under way', () => {
  it('a connection that breaks while a query is under way fails that query with DEPENDENCY_UNAVAILABLE, ends no process, and the next query is answered', async () => {
    await selectOne()
    const running = sql`select pg_sleep(1)`.execute(db)
    const refused = assert.rejects(running, isUnavailable)
    await until(
      async () =>
        (
          await sql`select 1 from pg_stat_activity where query like '%pg_sleep(1)%' and pid <> pg_backend_pid()`.execute(
            db,
          )
        ).rows.length > 0,
    )
    // If nobody listens for an error, the process throws it, and the test runner counts that as a
    // failure.
    proxy.resetAll()
    await refused
    const isAnswered = () =>
      selectOne().then(
        () => true,
        () => false,
      )
    await until(isAnswered, 5_000)
  })
})

describe('a Postgres that is silent', () => {
  it('while Postgres is silent, every query fails within 2 s, also a query without a connection, and queries succeed when Postgres answers again', async () => {
    await Promise.all([selectOne(), selectOne()])
    proxy.isSilent = true
    // A timer of the same kind, which a busy machine delays as it delays the timers of the pool.
    let isLate = false
    const limit = new PatientTimer(2_000, () => {
      isLate = true
    })
    await Promise.all(Array.from({ length: 5 }, () => assert.rejects(selectOne(), isUnavailable)))
    limit.end()
    assert.equal(isLate, false)
    proxy.isSilent = false
    assert.deepEqual((await selectOne()).rows, [{ one: 1 }])
  })
})

describe('a process that stands still', () => {
  it('a process that stalled for longer than its time limits still gets connections and answers from a working Postgres', async () => {
    // The first queries find no connection; the second ten queries find two.
    for (let round = 0; round < 2; round += 1) {
      const answers = Promise.all(Array.from({ length: 10 }, selectOne))
      standStill(1_200)
      await setImmediate()
      standStill(2_500)
      assert.equal((await answers).length, 10)
    }
  })

  it('a query that gives up waiting keeps no place in the pool', async () => {
    await Promise.all([selectOne(), selectOne()])
    proxy.isSilent = true
    await Promise.all(Array.from({ length: 20 }, () => assert.rejects(selectOne(), isUnavailable)))
    proxy.isSilent = false
    assert.equal((await Promise.all(Array.from({ length: 20 }, () => answered(selectOne)))).length, 20)
  })
})

describe('a Postgres that has no connection left', () => {
  it('a Postgres that has only one connection left for the pool serves all requests over it, one after the other', async (t) => {
    const { pathname } = new URL(services.databaseUrl)
    const name = pathname.slice(1)
    // The role of the tests is a superuser, to whom the limit of a database does not apply.
    const admin = openDatabase(services.databaseUrl, log, { connectionsMax: 1 })
    await sql`create role crowded login password 'crowded' connection limit 1`.execute(admin)
    await sql.raw(`grant connect on database "${name}" to crowded`).execute(admin)
    const url = new URL(services.databaseUrl)
    url.username = 'crowded'
    url.password = 'crowded'
    const crowded = openDatabase(url.href, log, { connectionsMax: 10 })
    const other = openDatabase(url.href, log)
    t.after(async () => {
      await Promise.all([crowded.destroy(), other.destroy()])
      await sql.raw(`revoke all on database "${name}" from crowded`).execute(admin)
      await sql`drop role crowded`.execute(admin)
      await admin.destroy()
    })
    const ask = () => answered(() => sql<{ one: number }>`select 1 as one`.execute(crowded))
    await ask()
    const answers = await Promise.all(Array.from({ length: 30 }, ask))
    assert.equal(answers.length, 30)
    // A transaction has the connection meanwhile, and the others wait for it.
    const [, second] = await Promise.all([
      crowded.transaction().execute(async (transaction) => await sql`select pg_sleep(0.3)`.execute(transaction)),
      ask(),
    ])
    assert.deepEqual(second.rows, [{ one: 1 }])
    // Another pool has no connection to wait for, and says so at once.
    await assert.rejects(sql`select 1`.execute(other), isUnavailable)
  })
})

describe('a statement', () => {
  it('a statement that runs too long is ended by the server, and its connection stays in use', async () => {
    const pid = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]?.pid
    const before = await pid()
    await assert.rejects(sql`select pg_sleep(10)`.execute(db), isUnavailable)
    assert.equal(await pid(), before)
  })

  it('an invalid statement throws the error of Postgres', async () => {
    await assert.rejects(sql`select nothing_of_this_name`.execute(db), (error) => sqlState(error) === '42703')
  })
})

describe('through PgBouncer, which refuses startup parameters', () => {
  beforeEach(() => {
    proxy.refusedParameters = ['statement_timeout', 'idle_in_transaction_session_timeout']
  })

  it('through PgBouncer, which refuses startup parameters, queries are answered and keep their time limits, which no transaction leaves behind', async () => {
    // More at once than the pool has connections, and the first of the process.
    const limits = await Promise.all(Array.from({ length: 10 }, () => answered(() => limitsOf(db))))
    assert.deepEqual(limits, Array(10).fill(['1500ms', '5s']))
    const { refusals } = proxy
    assert.deepEqual(await limitsOf(db), ['1500ms', '5s'])
    assert.equal(proxy.refusals, refusals)
    await db.transaction().execute(async (transaction) => {
      assert.deepEqual(await limitsOf(transaction), ['1500ms', '5s'])
    })
    await assert.rejects(sql`select nothing_of_this_name`.execute(db), (error) => sqlState(error) === '42703')
    assert.deepEqual(await limitsOf(db), ['1500ms', '5s'])
  })

  it('through PgBouncer, which refuses startup parameters, a transaction that fails is undone', async () => {
    await sql`create table kept (id int)`.execute(db)
    const failing = db.transaction().execute(async (transaction) => {
      await sql`insert into kept values (1)`.execute(transaction)
      throw new TypeError('undo it')
    })
    await assert.rejects(failing, TypeError)
    await sql`insert into kept values (2)`.execute(db)
    assert.deepEqual((await sql`select id from kept`.execute(db)).rows, [{ id: 2 }])
  })
})
