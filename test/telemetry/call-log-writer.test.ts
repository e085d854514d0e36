import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { Counter, Registry } from 'prom-client'
import { keepPartitions, listPartitions, partitionOf } from '../../src/db/call-log-partitions.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { type CallLogDeps, CallLogWriter } from '../../src/telemetry/call-log-writer.ts'
import { DroppedRows } from '../../src/telemetry/dropped-rows.ts'
import type { EndedCall } from '../../src/telemetry/ended-call.ts'
import { until } from '../support/gateway.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')
const services = await startServices()
const proxy = await startPostgresProxy(services.databaseUrl)
const db = openDatabase(services.databaseUrl, log)
after(async () => {
  await db.destroy()
  await proxy.close()
  await services.stop()
})
beforeEach(() => keepPartitions(db, 0))

function openWriter(t: TestContext, options: Partial<CallLogDeps> = {}) {
  const registers = [new Registry()]
  const counter = new Counter({ name: 'dropped', help: 'dropped', labelNames: ['reason'] as const, registers })
  const dropped = new DroppedRows(counter, Date.now)
  const own = openDatabase(proxy.url, log, { connectionsMax: 1 })
  const deps = { db: own, log, now: () => Date.now(), days: 7, megabytes: 1_000, dropped, ...options }
  const writer = new CallLogWriter(deps)
  let isClosed = false
  const close = async () => {
    if (!isClosed) await writer.close()
    isClosed = true
  }
  t.after(close)
  const lost = async (reason: string): Promise<number> =>
    (await counter.get()).values.find(({ labels }) => labels.reason === reason)?.value ?? 0
  return { writer, lost, close }
}

const newId = (kind: string): string => `${kind}_${randomUUID().replaceAll('-', '')}`

const callOf = (fields: Partial<EndedCall> = {}): EndedCall => ({
  ...{ id: newId('call'), requestId: newId('req'), via: 'call', accountId: randomUUID() },
  ...{ mode: 'live', slug: 'weather', endpoint: '/current', status: 200, totalMs: 12 },
  ...fields,
})

const countRows = async (): Promise<number> => Number((await db.selectFrom('call_log').select(({ fn }) => fn.countAll().as('rows')).executeTakeFirstOrThrow()).rows) // biome-ignore format: one line

const refused = (accountId: string) => callOf({ accountId, status: 429, code: 'RATE_LIMIT_EXCEEDED', refusedByPlan: { perMinute: 10 } }) // biome-ignore format: one line

it('a call becomes a row with all that is known of it, although no partition was there', async (t) => {
  const { writer, close } = openWriter(t)
  const times = { queueMs: 1.25, permitMs: 20, upstreamMs: 300.04, attempts: 2 }
  const call = callOf({
    ...{ keyId: randomUUID(), code: 'UPSTREAM_ERROR', status: 502, cause: 'HTTP 500', times, totalMs: 345.6 },
    ...{ cacheStatus: 'agw; fwd=miss', bytes: 77 },
    ...{ via: 'mcp', tool: 'call_api', quotedMs: 20.4, admissionMs: 2 },
  })
  writer.write(call)
  await close()
  const [{ at, ...row } = assert.fail()] = await db.selectFrom('call_log').selectAll().execute()
  assert.ok(Math.abs(at.getTime() - Date.now()) < 60_000)
  const uuid = (id = ''): string => id.replace(/^\w+_(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  assert.deepEqual(row, {
    ...{ id: uuid(call.id), request_id: uuid(call.requestId), account_id: call.accountId, key_id: call.keyId },
    ...{ status: 502, code: 'UPSTREAM_ERROR', cause: 'HTTP 500', attempts: 2, quoted_ms: 20, admission_ms: 2 },
    ...{ queue_ms: 1.3, permit_ms: 20, upstream_ms: 300, total_ms: 345.6, bytes: 77, mode: 'live', via: 'mcp' },
    ...{ slug: 'weather', endpoint: '/current', cache: 'miss', tool: 'call_api' },
  })
})

it('a cause that quotes an answer of the upstream is not written to the row', async (t) => {
  const { writer, close } = openWriter(t)
  writer.write(callOf({ cause: `Unexpected token 'S', "Secret value" is not valid JSON` }))
  writer.write(callOf({ cause: 'DNS: no such host' }))
  writer.write(callOf({ cause: 'HTTP 404 in 1.2 s, as if the route had moved' }))
  writer.write(callOf({ cause: 'no answer at secret.example' }))
  await close()
  const rows = await db.selectFrom('call_log').select('cause').orderBy('cause').execute()
  assert.deepEqual(
    rows.map(({ cause }) => cause),
    ['DNS: no such host', 'HTTP 404 in 1.2 s, as if the route had moved', null, null],
  )
})

it('rows wait for a Postgres that is silent, without a wait for their calls, and those without room are counted', async (t) => {
  const { writer, lost } = openWriter(t)
  proxy.isSilent = true
  t.after(() => {
    proxy.isSilent = false
  })
  const call = callOf()
  for (let made = 0; made < 20_100; made += 1) writer.write({ ...call, id: newId('call') })
  assert.equal(await lost('postgres'), 100)
  proxy.isSilent = false
  proxy.resetAll()
  await until(async () => (await countRows()) === 20_000, 30_000)
  assert.equal(await lost('postgres'), 100)
})

it('rows wait for a Postgres that accepts no writes, and the writer reports them until Postgres has accepted them', async (t) => {
  const { rows: [{ name = '' } = {}] } = await sql<{ name: string }>`select current_database() as name`.execute(db) // biome-ignore format: one line
  const setReadOnly = async (value: 'on' | 'off') => {
    await sql`alter database ${sql.id(name)} set default_transaction_read_only = ${sql.raw(value)}`.execute(db)
    proxy.resetAll()
  }
  await keepPartitions(db, 7)
  await setReadOnly('on')
  t.after(() => setReadOnly('off'))
  const waited: number[] = []
  const { writer } = openWriter(t, { dropped: { add: () => undefined, wait: (rows) => waited.push(rows) } })
  writer.write(callOf())
  await until(() => waited.at(-1) === 1, 10_000)
  await setReadOnly('off')
  await until(() => waited.at(-1) === 0, 10_000)
  assert.equal(await countRows(), 1)
})

it('a row that Postgres wrote without an acknowledgement exists once', async (t) => {
  const { writer } = openWriter(t)
  await keepPartitions(db, 7)
  proxy.breaksAfter = 'insert into call_log'
  writer.write(callOf())
  await until(() => proxy.breaksAfter === undefined, 5_000)
  writer.write(callOf())
  await until(async () => (await countRows()) === 2, 10_000)
})

it('rows that Postgres refuses for good are dropped and counted, and the next rows are written', async (t) => {
  const { writer, lost } = openWriter(t)
  writer.write(callOf({ accountId: 'none' }))
  await until(async () => (await lost('postgres')) === 1, 5_000)
  writer.write(callOf())
  await until(async () => (await countRows()) === 1, 5_000)
})

it('an account has as many rows of refused calls a minute as its plan has calls', async (t) => {
  const { writer, lost, close } = openWriter(t)
  const [ann, bob] = [randomUUID(), randomUUID()]
  for (let made = 0; made < 500; made += 1) writer.write(refused(ann))
  writer.write(refused(bob))
  // A call that was admitted is bounded by the plan already.
  writer.write(callOf({ accountId: ann }))
  assert.equal(await lost('account'), 490)
  await close()
  assert.equal(await countRows(), 12)
})

it('a day that is full leaves out free calls first, then successes, then everything', async (t) => {
  await keepPartitions(db, 7)
  const sizeOfDay = async () => {
    const day = partitionOf(new Date().toISOString().slice(0, 10))
    const { rows } = await sql<{ bytes: string }>`select pg_total_relation_size(${day}) as bytes`.execute(db)
    return Number(rows[0]?.bytes)
  }
  const failed = { status: 502, code: 'UPSTREAM_ERROR' } as const
  const kinds = [refused(randomUUID()), callOf({ mode: 'test' }), callOf(), callOf(failed)]
  const written = async (part: number) => {
    const megabytes = ((await sizeOfDay()) * 8) / part / 1_000_000
    const { writer, lost, close } = openWriter(t, { megabytes })
    writer.write(callOf())
    // With the first row it has read the size of the day.
    const before = await countRows()
    await until(async () => (await countRows()) > before, 5_000)
    for (const kind of kinds) writer.write({ ...kind, id: newId('call') })
    await close()
    return kinds.length - (await lost('size'))
  }
  assert.equal(await written(0.4), 4)
  assert.equal(await written(0.7), 2)
  assert.equal(await written(1.1), 1)
  assert.equal(await written(1.5), 0)
})

it('a log of calls that is switched off writes nothing and creates nothing', async (t) => {
  const { writer, close } = openWriter(t, { days: 0 })
  writer.write(callOf())
  await close()
  assert.deepEqual(await listPartitions(db), [])
})
