import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import pg from 'pg'
import { type CallFilter, type CallViewer, findCallsById, listCalls } from '../../src/db/call-log-pages.ts'
import { createPartitions, dayOf } from '../../src/db/call-log-partitions.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { createLog } from '../../src/log.ts'
import { type Services, startServices } from '../support/services.ts'

const DAY_MS = 86_400_000
const [ANN, BOB] = [randomUUID(), randomUUID()]
const ROWS = 30_000

describe('the log of calls', () => {
  let services: Services
  let db: Db

  before(async () => {
    services = await startServices()
    db = openDatabase(services.databaseUrl, createLog({ level: 'silent', pretty: false }, 'test'))
    const days = [-2, -1, 0].map((ahead) => dayOf(Date.now() + ahead * DAY_MS))
    await createPartitions(db, days)
    // Three days of rows, a row every few seconds. Every second row is Bob's, and Ann's first row
    // is the only failure of trivia.
    const client = new pg.Client({ connectionString: services.databaseUrl })
    await client.connect()
    await client.query(
      `insert into call_log (id, at, request_id, account_id, status, code, total_ms, mode, via, slug, endpoint)
      select gen_random_uuid(), now() - n * interval '5 seconds', gen_random_uuid(),
        case when n % 2 = 0 then '${ANN}' else '${BOB}' end::uuid,
        case when n = ${ROWS} then 502 else 200 end, case when n = ${ROWS} then 'UPSTREAM_ERROR' end,
        n, 'live', 'call', case when n = ${ROWS} then 'trivia' else 'weather' end, '/current'
      from generate_series(1, ${ROWS}) n
      where now() - n * interval '5 seconds' >= '${days[0]}'`,
    )
    await client.query('analyze call_log')
    await client.end()
  })
  after(async () => {
    await db.destroy()
    await services.stop()
  })

  async function read(filter: CallFilter, limit: number) {
    const pages: number[][] = []
    let after: Awaited<ReturnType<typeof listCalls>>['next']
    do {
      const page = await listCalls(db, filter, { limit, after })
      pages.push(page.calls.map(({ total_ms }) => total_ms))
      after = page.next
    } while (after && pages.length < 100)
    return pages
  }

  it('pages of an account have each of its calls once, newest first, over the days', async () => {
    const pages = await read({ accountId: ANN }, 1_000)
    const all = pages.flat()
    assert.deepEqual(
      all,
      all.map((_, index) => 2 * (index + 1)),
    )
    const { count } = await db
      .selectFrom('call_log')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .where('account_id', '=', ANN)
      .executeTakeFirstOrThrow()
    assert.equal(all.length, Number(count))
  })

  it('a filter that fits a single old call reads a bounded part of the log for each page', async () => {
    const pages = await read({ slug: 'trivia', status: [500, 599] }, 10)
    assert.deepEqual(pages.flat().length <= 1, true)
    assert.ok(pages.length >= 2, `${pages.length} pages`)
  })

  it('a span of time has the calls from its first moment on and none of its last', async () => {
    const [from, to] = [new Date(Date.now() - 60_000), new Date(Date.now() - 30_000)]
    const { calls } = await listCalls(db, { accountId: ANN, from, to }, { limit: 100, after: undefined })
    assert.ok(calls.length >= 2 && calls.length <= 4, `${calls.length}`)
    for (const { at } of calls) assert.ok(at >= from && at < to)
  })

  it('a call is found by its id and by the id of its request, and only by its own account', async () => {
    const { calls } = await listCalls(db, { accountId: ANN }, { limit: 1, after: undefined })
    const [{ id, request_id: requestId } = assert.fail()] = calls
    const found = async (kind: 'call' | 'req', uuid: string | null, viewer: CallViewer) =>
      (await findCallsById(db, { kind, uuid: uuid ?? '' }, viewer)).map((row) => row.id)
    for (const viewer of [{ accountId: ANN }, 'operator'] as const) {
      assert.deepEqual(await found('call', id, viewer), [id])
      assert.deepEqual(await found('req', requestId, viewer), [id])
    }
    assert.deepEqual(await found('call', id, { accountId: BOB }), [])
    assert.deepEqual(await found('req', requestId, { accountId: BOB }), [])
  })

  it('every way of reading the log goes by an index, and none sorts', async () => {
    const plans = await Promise.all([
      explain(sql`select * from call_log where account_id = ${ANN} order by at desc, id desc limit 101`),
      explain(sql`select * from call_log order by at desc, id desc limit 101`),
      explain(sql`select * from call_log where id = ${randomUUID()}`),
      explain(sql`select * from call_log where request_id = ${randomUUID()}`),
    ])
    for (const plan of plans) {
      assert.match(plan, /Index/)
      assert.doesNotMatch(plan, /Seq Scan|"Sort"/)
    }
  })

  /** A partition of few rows is read whole if that may be, and its day has few at some hours. */
  async function explain(query: ReturnType<typeof sql>): Promise<string> {
    return await db.transaction().execute(async (transaction) => {
      await sql`set local enable_seqscan = off`.execute(transaction)
      const { rows } = await sql`explain (format json) ${query}`.execute(transaction)
      return JSON.stringify(rows)
    })
  }
})
