import assert from 'node:assert/strict'
import { after, beforeEach, it } from 'node:test'
import { sql } from 'kysely'
import pg from 'pg'
import {
  createPartitions,
  dayOf,
  keepPartitions,
  listPartitions,
  partitionOf,
} from '../../src/db/call-log-partitions.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')
const services = await startServices()
const db = openDatabase(services.databaseUrl, log)
const other = openDatabase(services.databaseUrl, log)
after(async () => {
  await Promise.all([db.destroy(), other.destroy()])
  await services.stop()
})
beforeEach(() => keepPartitions(db, 0))

const DAY_MS = 86_400_000
const dayIn = (days: number): string => dayOf(Date.now() + days * DAY_MS)

const insertAt = (at: string) => sql`
  insert into call_log (id, at, account_id, status, total_ms, mode, via, slug)
  values (gen_random_uuid(), ${at}::timestamptz, gen_random_uuid(), 200, 1, 'live', 'call', 'weather')`

it('partitions of today and of the next two days are there, and partitions that are too old are dropped', async () => {
  await createPartitions(db, [dayIn(-9), dayIn(-8), dayIn(-7)])
  await keepPartitions(db, 7)
  assert.deepEqual(
    await listPartitions(db),
    [-7, 0, 1, 2].map((days) => partitionOf(dayIn(days))),
  )
  await keepPartitions(db, 0)
  assert.deepEqual(await listPartitions(db), [])
})

it('processes that create the same partition at once make one, with the indexes of the table', async () => {
  await Promise.all([db, other, db, other].map((each) => createPartitions(each, [dayIn(0), dayIn(1)])))
  assert.deepEqual(await listPartitions(db), [partitionOf(dayIn(0)), partitionOf(dayIn(1))])
  const { rows } = await sql`select indexname from pg_indexes where tablename = ${partitionOf(dayIn(0))}`.execute(db)
  assert.equal(rows.length, 4)
})

it('a process waits as long as another process changes the partitions', async () => {
  const holder = new pg.Client({ connectionString: services.databaseUrl })
  await holder.connect()
  try {
    await holder.query(`select pg_advisory_lock(hashtextextended(current_schema() || '.call_log', 2))`)
    const startedAt = performance.now()
    const creation = createPartitions(db, [dayIn(0)])
    // Longer than a statement waits for a lock of the table.
    while (performance.now() - startedAt < 400) assert.deepEqual(await listPartitions(other), [])
    await holder.query('select pg_advisory_unlock_all()')
    await creation
    assert.deepEqual(await listPartitions(db), [partitionOf(dayIn(0))])
  } finally {
    await holder.end()
  }
})

it('a row is in the partition of its UTC day, up to the last moment of the day', async () => {
  await createPartitions(db, ['2026-12-31', '2027-01-01'])
  await insertAt('2026-12-31T23:59:59.999Z').execute(db)
  await insertAt('2027-01-01T00:00:00.000Z').execute(db)
  for (const day of ['2026-12-31', '2027-01-01']) {
    const { rows } = await sql<{ at: Date }>`select at from ${sql.table(partitionOf(day))}`.execute(db)
    assert.deepEqual(
      rows.map(({ at }) => dayOf(at.getTime())),
      [day],
    )
  }
})

it('a partition that a process left detached is dropped by the next look', async () => {
  await createPartitions(db, [dayIn(-9)])
  await sql`alter table call_log detach partition ${sql.table(partitionOf(dayIn(-9)))}`.execute(db)
  await keepPartitions(db, 7)
  assert.ok(!(await listPartitions(db)).includes(partitionOf(dayIn(-9))))
})

it('rows are written while partitions are created; a drop that finds the table in use gives up within its lock time-out', async () => {
  await createPartitions(db, [dayIn(-9), dayIn(0)])
  const reader = new pg.Client({ connectionString: services.databaseUrl })
  await reader.connect()
  try {
    await reader.query('begin')
    // A long read, such as the read of a backup.
    await reader.query('select count(*) from call_log')
    await createPartitions(db, [dayIn(1)])
    await insertAt(new Date().toISOString()).execute(other)
    await assert.rejects(keepPartitions(db, 7), /lock timeout/)
    // Nothing waits behind it. The next row is written at once, although the read continues.
    await insertAt(new Date().toISOString()).execute(other)
    assert.ok((await listPartitions(db)).includes(partitionOf(dayIn(-9))))
    await reader.query('commit')
  } finally {
    await reader.end()
  }
  await keepPartitions(db, 7)
  assert.ok(!(await listPartitions(db)).includes(partitionOf(dayIn(-9))))
})
