import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { TLSSocket } from 'node:tls'
import { sql } from 'kysely'
import { loadDatabaseUrl } from '../../src/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { openClient, PostgresAccess } from '../../src/db/postgres-access.ts'
import { createLog } from '../../src/log.ts'
import { makeCertificate } from '../support/certificate.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { type Services, startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** Values that a managed Postgres, or its administrator, may have given to a role or a database. */
const FOREIGN = {
  datestyle: 'German, DMY',
  intervalstyle: 'sql_standard',
  timezone: 'America/Los_Angeles',
  bytea_output: 'escape',
  extra_float_digits: '-10',
  standard_conforming_strings: 'off',
  lock_timeout: '1',
  // It holds for the statement that puts our value in its place.
  statement_timeout: '1001',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '60000',
  default_transaction_isolation: 'serializable',
}

/** Variables of the process that `pg` reads. */
const VARIABLES = {
  PGSSLMODE: 'require',
  PGSSLNEGOTIATION: 'direct',
  PGOPTIONS: '--datestyle=German --search_path=nowhere',
  PGHOST: '203.0.113.1',
  PGPORT: '1',
  PGUSER: 'nobody',
  PGPASSWORD: 'wrong',
  PGDATABASE: 'nowhere',
  PGAPPNAME: 'other',
  PGCONNECT_TIMEOUT: '1',
  PGCLIENTENCODING: 'LATIN1',
  PGTZ: 'Asia/Tokyo',
  PGDATESTYLE: 'German',
}

let services: Services
let database: string
before(async () => {
  services = await startServices({ isEmpty: true })
  database = new URL(services.databaseUrl).pathname.slice(1)
})
after(() => services.stop())

async function readEverything(url: string): Promise<unknown[]> {
  const db = openDatabase(url, log)
  try {
    const read = () =>
      sql<Record<string, unknown>>`
        select timestamptz '2026-11-25 01:02:03+00' as time, '\\x00ff'::bytea as bytes, 0.1::float8 + 0.2 as float,
               date_trunc('day', timestamptz '2026-11-25 01:02:03+00') as day,
               current_setting('transaction_isolation') as isolation, current_setting('search_path') as path,
               current_setting('statement_timeout') as longest,
               current_setting('idle_session_timeout') as idle`.execute(db)
    const { rows } = await read()
    const { rows: inTransaction } = await db.transaction().execute(() => read())
    assert.deepEqual(inTransaction, rows)
    return Object.values(rows[0] ?? {})
  } finally {
    await db.destroy()
  }
}

const EVERYTHING = [
  new Date('2026-11-25T01:02:03Z'),
  Buffer.from([0, 255]),
  0.30000000000000004,
  new Date('2026-11-25T00:00:00Z'),
  'read committed',
  '"$user", public',
  '1500ms',
  '0',
]

describe('every connection to Postgres', () => {
  it('every connection to Postgres reads the same values whatever the settings of the database are, through PgBouncer too', async (t) => {
    const admin = await openClient(new PostgresAccess(services.databaseUrl))
    t.after(async () => {
      await admin.query(`alter database ${database} reset all`)
      await admin.end()
    })
    for (const [name, value] of Object.entries(FOREIGN))
      await admin.query(`alter database ${database} set ${name} = '${value}'`)
    assert.deepEqual(await readEverything(services.databaseUrl), EVERYTHING)
    const proxy = await startPostgresProxy(services.databaseUrl)
    t.after(proxy.close)
    proxy.refusedParameters = ['options']
    assert.deepEqual(await readEverything(proxy.url), EVERYTHING)
    await migrate(services.databaseUrl)
  })

  it('every connection to the embedded Postgres is made whatever the variables of libpq say', async (t) => {
    const before = { ...process.env }
    Object.assign(process.env, VARIABLES)
    t.after(() => {
      for (const name of Object.keys(VARIABLES)) delete process.env[name]
      Object.assign(process.env, before)
    })
    const url = loadDatabaseUrl({ ...process.env, DATABASE_URL: services.databaseUrl })
    assert.deepEqual(await readEverything(url), EVERYTHING)
    await migrate(url)
  })

  it('every connection to a Postgres of one’s own is made with what libpq takes from its variables, after what the address says', () => {
    const given = 'postgres://user:p%40ss@db.example.com:6432/a%20b'
    const complete = (url: string, variables: Record<string, string>) =>
      new PostgresAccess(loadDatabaseUrl({ ...variables, DATABASE_URL: url })).options
    const plain = complete(given, {})
    const { user, password, host, port, database, ssl } = plain
    assert.deepEqual(
      [user, password, host, port, database, ssl],
      ['user', 'p@ss', 'db.example.com', 6432, 'a b', false],
    )
    assert.deepEqual(complete(given, { PGSSLMODE: 'require' }).ssl, {
      ca: undefined,
      cert: undefined,
      key: undefined,
      rejectUnauthorized: false,
    })
    assert.equal(complete(`${given}?sslmode=disable`, { PGSSLMODE: 'require', PGSSLNEGOTIATION: 'direct' }).ssl, false)
    assert.match(
      String(complete(given, { PGOPTIONS: '-c search_path=a' }).options),
      /^-c search_path=a -c datestyle=ISO/,
    )
    assert.match(
      String(complete(`${given}?options=-csearch_path%3Db`, { PGOPTIONS: '-c search_path=a' }).options),
      /^-csearch_path=b -c datestyle=ISO/,
    )
    assert.throws(
      () => complete(`${given}?sslmode=requires`, {}),
      /DATABASE_URL cannot be used: its sslmode must be one/,
    )
    assert.throws(() => complete(given, { PGSSLMODE: 'on' }), /sslmode must be one of/)
    const sockets = complete('postgres://user@%2Fvar%2Frun%2Fpostgresql/db', {})
    assert.equal(sockets.host, '/var/run/postgresql')
    assert.equal(complete('postgres:///db?host=/tmp&port=5433', {}).port, 5433)
    assert.equal(complete('postgres://user@[::1]/db', {}).host, '::1')
    const asParameters = complete('postgresql:///?host=db&dbname=a%20b&user=user&password=p%40ss', {})
    assert.deepEqual(
      [asParameters.user, asParameters.password, asParameters.host, asParameters.database],
      ['user', 'p@ss', 'db', 'a b'],
    )
  })
})

describe('sslmode in the address of Postgres', () => {
  let folder: string
  let own: { certFile: string; keyFile: string }
  let other: { certFile: string; keyFile: string }
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agw-sslmode-'))
    ;[own, other] = await Promise.all([makeCertificate(folder, 'own'), makeCertificate(folder, 'other')])
  })
  after(() => rm(folder, { recursive: true, force: true }))

  /**
   * Postgres behind TLS that is ended here.
   *
   * @returns its address, and how many connections came with TLS
   */
  async function startTlsFront(): Promise<{ url: URL; encrypted: () => number; close: () => void }> {
    const [cert, key] = await Promise.all([readFile(own.certFile), readFile(own.keyFile)])
    const target = new URL(services.databaseUrl)
    let count = 0
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      const upstream = connect(Number(target.port), target.hostname)
      upstream.on('error', () => undefined)
      socket.once('close', () => upstream.destroy())
      socket.once('data', (first) => {
        if (first.length !== 8) {
          upstream.write(first)
          socket.pipe(upstream).pipe(socket)
          return
        }
        socket.write('S')
        const secure = new TLSSocket(socket, { isServer: true, cert, key })
        secure
          .on('error', () => undefined)
          .once('secure', () => {
            count += 1
          })
        secure.pipe(upstream).pipe(secure)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = new URL(services.databaseUrl)
    url.hostname = '127.0.0.1'
    url.port = String((server.address() as AddressInfo).port)
    url.search = ''
    return { url, encrypted: () => count, close: () => server.close() }
  }

  const isReached = async (url: string): Promise<boolean> => {
    const client = await openClient(new PostgresAccess(url)).catch(() => undefined)
    await client?.end()
    return client !== undefined
  }

  it('sslmode in the address of Postgres without TLS reaches it where libpq would', async () => {
    const withMode = (mode: string) => services.databaseUrl.replace('sslmode=disable', `sslmode=${mode}`)
    for (const mode of ['disable', 'allow', 'prefer']) {
      assert.equal(await isReached(withMode(mode)), true, mode)
      const db = openDatabase(withMode(mode), log)
      assert.equal((await Promise.all([sql`select 1`.execute(db), sql`select 1`.execute(db)])).length, 2)
      await db.destroy()
    }
    await migrate(withMode('prefer'))
    for (const mode of ['require', 'verify-ca', 'verify-full', 'no-verify'])
      assert.equal(await isReached(withMode(mode)), false, mode)
  })

  it('sslmode in the address of Postgres with TLS encrypts and verifies as libpq does', async (t) => {
    const front = await startTlsFront()
    t.after(front.close)
    // The certificate is of localhost.
    const rows: [search: string, host: string, isReached: boolean, isEncrypted: boolean][] = [
      ['', '127.0.0.1', true, false],
      ['sslmode=disable', '127.0.0.1', true, false],
      ['sslmode=allow', '127.0.0.1', true, false],
      ['sslmode=prefer', '127.0.0.1', true, true],
      ['sslmode=require', '127.0.0.1', true, true],
      ['sslmode=no-verify', '127.0.0.1', true, true],
      [`sslmode=require&sslrootcert=${own.certFile}`, '127.0.0.1', true, true],
      [`sslmode=require&sslrootcert=${other.certFile}`, '127.0.0.1', false, false],
      [`sslmode=verify-ca&sslrootcert=${own.certFile}`, '127.0.0.1', true, true],
      [`sslmode=verify-ca&sslrootcert=${other.certFile}`, '127.0.0.1', false, false],
      ['sslmode=verify-ca', '127.0.0.1', false, false],
      [`sslmode=verify-full&sslrootcert=${own.certFile}`, 'localhost', true, true],
      [`sslmode=verify-full&sslrootcert=${other.certFile}`, 'localhost', false, false],
      ['sslmode=verify-full', 'localhost', false, false],
      ['sslmode=verify-full&sslrootcert=system', 'localhost', false, false],
      [`sslrootcert=${own.certFile}`, 'localhost', true, true],
      ['ssl=true', 'localhost', false, false],
    ]
    for (const [search, host, reached, encrypted] of rows) {
      const url = new URL(front.url)
      url.hostname = host
      url.search = search
      const count = front.encrypted()
      assert.equal(await isReached(url.href), reached, search)
      if (reached) assert.equal(front.encrypted() - count, encrypted ? 1 : 0, search)
    }
  })
})
