import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import pg from 'pg'
import { type CallFilter, findCallsById, listCalls } from '../../src/db/call-log-pages.ts'
import { createPartitions, dayOf, keepPartitions } from '../../src/db/call-log-partitions.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { startServices } from '../support/services.ts'

/**
 * `node test/tools/call-log-pages.ts [rows]`: measures how long it takes to read a page of a log of
 * a million calls. It makes the rows in a Postgres of its own, half of them for the same account,
 * and prints the milliseconds of each way of reading.
 */
const ROWS = Number(process.argv[2] ?? 1_000_000)
const DAYS = 8
const DAY_MS = 86_400_000
const BIG = randomUUID()

async function fill(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    `insert into call_log (id, at, request_id, account_id, key_id, status, code, attempts, admission_ms, queue_ms, permit_ms,
       upstream_ms, total_ms, bytes, mode, via, slug, endpoint, cache)
     select gen_random_uuid(), now() - n * interval '${(DAYS - 1) * DAY_MS} milliseconds' / ${ROWS}, gen_random_uuid(),
       case when n % 2 = 0 then '${BIG}' else md5((n % 500)::text)::uuid end::uuid, md5('key' || n % 700)::uuid,
       case when n % 50 = 0 then 502 else 200 end, case when n % 50 = 0 then 'UPSTREAM_ERROR' end, 1, 2, 1, 1, 80, 90, 500,
       'live', 'call', (array['weather', 'trivia', 'currency', 'geocoding'])[1 + n % 4], '/current', 'miss'
     from generate_series(1, ${ROWS}) n`,
  )
  await client.query('analyze call_log')
  await client.end()
}

/** Reads ten times. Returns the milliseconds of the slowest reading and the median. */
async function measure(read: () => Promise<unknown>): Promise<{ median: string; slowest: string }> {
  const times: number[] = []
  for (let run = 0; run < 10; run += 1) {
    const startedAt = performance.now()
    await read()
    times.push(performance.now() - startedAt)
  }
  times.sort((a, b) => a - b)
  return { median: (times[5] ?? 0).toFixed(1), slowest: (times[9] ?? 0).toFixed(1) }
}

async function report(db: Db): Promise<void> {
  const after = { at: Date.now() - 5 * DAY_MS, id: randomUUID() }
  const page = (filter: CallFilter, from?: typeof after) => () => listCalls(db, filter, { limit: 100, after: from })
  const [row] = (await listCalls(db, { accountId: BIG }, { limit: 1, after: undefined })).calls
  const viewer = { accountId: BIG }
  const ways: [name: string, read: () => Promise<unknown>][] = [
    ['first page of an account with half of the rows', page({ accountId: BIG })],
    ['a page of it five days back', page({ accountId: BIG }, after)],
    ['its failures', page({ accountId: BIG, isFailure: true })],
    ['its calls of one API and status', page({ accountId: BIG, slug: 'trivia', status: [400, 499] })],
    ['a filter that fits none of its calls', page({ accountId: BIG, code: 'NOT_FOUND' })],
    ['first page of a small account', page({ accountId: (await smallAccount(db)) ?? '' })],
    ['a call by its id', () => findCallsById(db, { kind: 'call', uuid: row?.id ?? '' }, viewer)],
    ['the calls of a request', () => findCallsById(db, { kind: 'req', uuid: row?.request_id ?? '' }, viewer)],
    ['an id that is not there', () => findCallsById(db, { kind: 'call', uuid: randomUUID() }, viewer)],
    ['first page of all accounts', page({})],
    ['failures of all accounts', page({ isFailure: true })],
    ['a filter that fits none of all calls', page({ code: 'NOT_FOUND' })],
  ]
  const rows: Record<string, unknown> = {}
  for (const [name, read] of ways) rows[name] = await measure(read)
  console.table(rows)
}

async function smallAccount(db: Db): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select account_id as id from call_log where account_id <> ${BIG} order by at desc limit 1`.execute(db)
  return rows[0]?.id
}

const services = await startServices()
const db = openDatabase(services.databaseUrl, createLog({ level: 'warn', pretty: true }, 'call-log-pages'))
try {
  await createPartitions(db, Array.from({ length: DAYS }, (_, back) => dayOf(Date.now() - back * DAY_MS))) // biome-ignore format: one line
  console.log(`making ${ROWS} rows …`)
  await fill(services.databaseUrl)
  const { rows } = await sql<{ bytes: string }>`
    select sum(pg_total_relation_size(inhrelid)) as bytes from pg_inherits
    where inhparent = 'call_log'::regclass`.execute(db)
  console.log(`${(Number(rows[0]?.bytes) / ROWS).toFixed(0)} bytes a row with its indexes`)
  await report(db)
  const startedAt = performance.now()
  await keepPartitions(db, 1)
  console.log(`dropped ${DAYS - 2} partitions in ${(performance.now() - startedAt).toFixed(0)} ms`)
} finally {
  await db.destroy()
  await services.stop()
}
