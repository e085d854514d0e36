import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { TLSSocket } from 'node:tls'
import { sql } from 'kysely'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { openClient, PostgresAccess } from '../../src/db/postgres-access.ts'
import { listMigrations, MIGRATIONS } from '../../src/db/schema-version.ts'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { createLog } from '../../src/log.ts'
import { makeCertificate } from '../support/certificate.ts'
import { inheritedEnvironment, until } from '../support/gateway.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { startServices } from '../support/services.ts'

const COMMAND = join(import.meta.dirname, '../../src/db/migrate.ts')

function run(
  databaseUrl: string,
  ...args: string[]
): { output: () => string; ended: Promise<number | null>; kill: () => void } {
  let output = ''
  const { promise: ended, resolve } = Promise.withResolvers<number | null>()
  const child = execFile(process.execPath, [COMMAND, ...args], {
    env: { ...inheritedEnvironment(), DATABASE_URL: databaseUrl },
  })
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (output += text))
  child.once('close', (code) => resolve(code))
  return { output: () => output, ended, kill: () => child.kill('SIGTERM') }
}

/** An empty Postgres after the command has migrated it. */
async function startMigrated(t: TestContext): Promise<{ databaseUrl: string; db: Db }> {
  const { databaseUrl, stop } = await startServices({ isEmpty: true })
  t.after(stop)
  assert.equal(await run(databaseUrl).ended, 0)
  const db = openDatabase(databaseUrl, createLog({ level: 'silent', pretty: false }, 'test'))
  t.after(() => db.destroy())
  return { databaseUrl, db }
}

describe('the command that migrates', () => {
  it('the command that migrates says in one sentence that it waits for a Postgres that does not answer, and ends on a signal', async () => {
    const port = await freePort()
    const { output, ended, kill } = run(`postgres://user:hunter2@127.0.0.1:${port}/gateway`)
    const deadline = performance.now() + 20_000
    while (output() === '' && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
    kill()
    assert.equal(await ended, 1)
    assert.equal(
      output(),
      `Postgres at 127.0.0.1:${port} does not answer yet (connect ECONNREFUSED 127.0.0.1:${port}); trying for a minute …\n`,
    )
  })

  it('the command that migrates ends at once if the certificate of Postgres is not of the authority that it was given', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'agw-migrate-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const [own, other] = await Promise.all([makeCertificate(folder, 'own'), makeCertificate(folder, 'other')])
    const [cert, key] = await Promise.all([readFile(own.certFile), readFile(own.keyFile)])
    // The start of a connection to Postgres: the client requests TLS, and the server agrees.
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.write('S')
        new TLSSocket(socket, { isServer: true, cert, key }).on('error', () => undefined)
      })
    }).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { output, ended } = run(
      `postgres://user:hunter2@127.0.0.1:${port}/gateway?sslmode=verify-full&sslrootcert=${other.certFile}`,
    )
    assert.equal(await ended, 1)
    assert.match(output(), new RegExp(`^release: Postgres at 127\\.0\\.0\\.1:${port} cannot be used: .*certificate`))
  })

  it('the command that migrates names the variable whose address cannot be used, without a stack trace', async () => {
    const { output, ended } = run('localhost:5432/gateway')
    assert.equal(await ended, 1)
    assert.equal(
      output(),
      'release: DATABASE_URL must be the address of Postgres, postgres://user:password@host/database\n',
    )
  })

  it('the command that migrates does nothing if it gets an argument, which may be a wish not to migrate', async () => {
    const { output, ended } = run('postgres://user@127.0.0.1:1/gateway', '--dry-run')
    assert.equal(await ended, 1)
    assert.equal(output(), 'release: nothing was done: migrate accepts no argument, not "--dry-run"\n')
  })

  it('the command that migrates leaves the schema of a newer version as it is, so that an upgrade can be rolled back', async (t) => {
    const { databaseUrl, db } = await startMigrated(t)
    const newer = ['20991231000000-of-the-next', '20991231000001-of-the-one-after']
    for (const name of newer)
      await sql`insert into kysely_migration (name, timestamp) values (${name}, ${new Date().toISOString()})`.execute(
        db,
      )
    const { output, ended } = run(databaseUrl)
    assert.equal(await ended, 0, output())
    assert.equal(
      output(),
      `The schema is newer than this version, which runs on it: ${newer.join(', ')}\nThe schema is up to date.\n`,
    )
    const { rows } = await sql<{ name: string }>`select name from kysely_migration where name like '2099%'`.execute(db)
    assert.equal(rows.length, 2)
  })

  it('the command that migrates does not keep queries waiting while a dump holds the table that a migration changes', async (t) => {
    const { databaseUrl, db } = await startMigrated(t)
    // The schema of the version before the lists of addresses.
    for (const name of (await listMigrations()).filter((each) => each >= '20261129100000').reverse()) {
      const { down } = await import(new URL(`${name}.ts`, MIGRATIONS).href)
      await down(db)
      await sql`delete from kysely_migration where name = ${name}`.execute(db)
    }
    const dump = await openClient(new PostgresAccess(databaseUrl))
    t.after(() => dump.end())
    // The wait for a lock is longer.
    await sql`alter database ${sql.id(new URL(databaseUrl).pathname.slice(1))} set transaction_timeout = 400`.execute(
      db,
    )
    await dump.query('begin; lock table api_keys in access share mode')
    const { output, ended } = run(databaseUrl)
    await until(() => output() !== '')
    assert.equal(output(), 'Another session, such as a dump, uses a table that a migration changes; trying again …\n')
    const reader = await openClient(new PostgresAccess(databaseUrl, { statementMs: 10_000, idleInTransactionMs: 0 }))
    t.after(() => reader.end())
    // A wait of ten seconds would end in an error.
    for (let reads = 0; reads < 5; reads++) await reader.query('select 1 from api_keys')
    await dump.query('commit')
    assert.equal(await ended, 0, output())
    assert.match(output(), /\nMigrated: 20261129100000-addresses/)
  })

  it('the command that migrates says in one sentence that Postgres ended its connection between two statements', async (t) => {
    const services = await startServices({ isEmpty: true })
    t.after(services.stop)
    const proxy = await startPostgresProxy(services.databaseUrl)
    t.after(proxy.close)
    proxy.endsAfter = 'pg_advisory_lock'
    const { output, ended } = run(proxy.url)
    assert.equal(await ended, 1, output())
    assert.equal(proxy.endsAfter, undefined, output())
    assert.match(output(), /^release: .+\n$/)
  })
})
