import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { EmbeddedOptions, EmbeddedServer } from '../../src/local/embedded/embedded-server.ts'
import { keepServer } from '../../src/local/embedded/keep-server.ts'
import { startPostgres } from '../../src/local/embedded/postgres.ts'
import { startRedis } from '../../src/local/embedded/redis.ts'
import { until } from '../support/gateway.ts'

async function keep(t: TestContext, name: string, start: (options: EmbeddedOptions) => Promise<EmbeddedServer>) {
  const dataDir = await mkdtemp(join(tmpdir(), 'agw-kept-'))
  const said: string[] = []
  const options = { dataDir, print: (text: string) => said.push(text) }
  const server = await keepServer({ name, start: () => start(options), print: options.print })
  t.after(async () => {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  })
  /**
   * Kills the server, whose process id is in the file, and waits until it says that it runs again.
   */
  const kill = async (file: string) => {
    const deaths = said.length
    process.kill(Number.parseInt(readFileSync(join(dataDir, file), 'utf8'), 10), 'SIGKILL')
    await until(() => said.length > deaths)
  }
  return { server, said, kill, dataDir }
}

test('a Redis that dies is started again on the same port and data, and is not started again after the third death in a minute', async (t) => {
  const { server, said, kill, dataDir } = await keep(t, 'Redis', startRedis)
  const client = new Redis(server.url)
  t.after(() => client.disconnect())
  client.on('error', () => undefined)
  await client.set('kept', 'yes')
  // The append-only file is synced each second.
  await until(async () => /aof_pending_bio_fsync:0/.test(await client.info('persistence')))
  await kill('redis/pid')
  assert.equal(await client.get('kept'), 'yes')
  assert.match(said.at(-1) ?? '', /^The embedded Redis died and was started again within [\d.]+ s\.$/)
  await kill('redis/pid')
  assert.equal(said.length, 2)
  process.kill(Number.parseInt(readFileSync(join(dataDir, 'redis/pid'), 'utf8'), 10), 'SIGKILL')
  const reason = await server.givenUp
  assert.match(
    reason.message,
    /^The embedded Redis died 3 times within a minute\. Its last log lines:\n.*Ready to accept/s,
  )
})

test('a Postgres that dies is started again on the same port and data, also while it is being used', async (t) => {
  const { server, said, kill } = await keep(t, 'Postgres', startPostgres)
  const query = async (text: string) => {
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => undefined)
    await client.connect()
    return await client.query(text).finally(() => client.end())
  }
  await query('create table kept (n int)')
  const sleeping = assert.rejects(query('select pg_sleep(30)'))
  await kill('postgres/data/postmaster.pid')
  await sleeping
  assert.deepEqual((await query('select * from kept')).rows, [])
  assert.match(said.at(-1) ?? '', /^The embedded Postgres died and was started again/)
})
