import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { insertAuditRecord } from '../../src/db/audit-log.ts'
import { openTestConsole, type TestConsole } from '../support/console.ts'

describe('the audit log', () => {
  let console_: TestConsole
  before(async () => {
    console_ = await openTestConsole()
    const { db } = console_.context
    for (let number = 1; number <= 7; number += 1) {
      const action = number % 2 === 0 ? 'upstream.pause' : 'user.update'
      await insertAuditRecord(db, { actor: `casey-${number} (127.0.0.1)`, action, subject: `subject-${number}` })
    }
    await sql`update audit_log set at = ('2026-01-0' || substr(subject, 9) || 'T12:00:00Z')::timestamptz`.execute(db)
  })
  after(async () => await console_.stop())

  const get = async (url: string, headers: Record<string, string> = {}) =>
    await console_.app.inject({ url, headers: { ...console_.bearer, ...headers } })
  const subjects = (records: { subject: string }[]) => records.map(({ subject }) => Number(subject.slice(8)))
  const found = async (query: string) => subjects((await get(`/v1/operator/audit?${query}`)).json().records)

  it('the audit log is read page by page, each record once, as the Link header leads', async () => {
    const seen: number[] = []
    let url: string | undefined = '/v1/operator/audit?limit=3&actor=casey'
    const sizes: number[] = []
    while (url) {
      const answer = await get(url)
      const { records } = answer.json()
      seen.push(...subjects(records))
      sizes.push(records.length)
      url = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
      // If a change is made meanwhile, no page moves.
      if (sizes.length === 1)
        await insertAuditRecord(console_.context.db, { actor: 'casey', action: 'x', subject: 'subject-8' })
    }
    assert.deepEqual(seen, [7, 6, 5, 4, 3, 2, 1])
    assert.deepEqual(sizes, [3, 3, 1])
    await console_.context.db.deleteFrom('audit_log').where('subject', '=', 'subject-8').execute()
  })

  it('the audit log is filtered by time, actor, action and subject', async () => {
    assert.deepEqual(await found('from=2026-01-03&to=2026-01-04'), [4, 3], 'the last day counts with all its hours')
    assert.deepEqual(await found('from=2026-01-03T12:00:00Z&to=2026-01-04T12:00:00Z'), [3])
    assert.deepEqual(await found('action=upstream'), [6, 4, 2])
    assert.deepEqual(await found('action=upstream.pause&actor=CASEY-4'), [4])
    assert.deepEqual(await found('action=up'), [], 'no part of a word')
    assert.deepEqual(await found('actor=%25'), [], 'a wildcard of SQL is a character')
    assert.deepEqual(await found('subject=subject-2&actor=&from='), [2], 'empty fields of a form')
    for (const query of ['from=2026-13-40', 'from=yesterday', 'cursor=x', 'limit=0', 'actor=%00'])
      assert.equal((await get(`/v1/operator/audit?${query}`)).statusCode, 400, query)
  })

  it('the audit log is exported whole as a line of JSON each, in the API by Accept and in the console as a file', async () => {
    const asked = await get('/v1/operator/audit?action=upstream&limit=1', { accept: 'application/x-ndjson' })
    const file = await get('/audit.ndjson?action=upstream')
    for (const { statusCode, headers, body } of [asked, file]) {
      assert.equal(statusCode, 200)
      assert.match(String(headers['content-type']), /^application\/x-ndjson/)
      const records = body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      assert.deepEqual(subjects(records), [6, 4, 2])
      assert.deepEqual(Object.keys(records[0]).sort(), ['action', 'actor', 'after', 'at', 'before', 'id', 'subject'])
    }
    assert.match(String(file.headers['content-disposition']), /attachment/)
    await sql`insert into audit_log (actor, action, subject) select 'many', 'many.x', 'subject-' || n from generate_series(1, 1203) n`.execute(
      console_.context.db,
    )
    const { body } = await get('/audit.ndjson?action=many')
    assert.equal(new Set(body.trimEnd().split('\n')).size, 1_203)
  })

  it('the audit log is a page with filters that stay in its links, and texts that stay texts', async () => {
    const page = (await get('/audit?action=upstream&limit=2')).body
    assert.match(page, /subject-6.*subject-4/s)
    assert.doesNotMatch(page, /subject-2</)
    const [, older = ''] = /href="([^"]+)" rel="next"/.exec(page) ?? []
    assert.match((await get(older.replaceAll('&#38;', '&'))).body, /subject-2/)
    assert.match((await get('/audit?actor=nobody')).body, /No change fits\./)
    const script = '<script>alert(1)</script>'
    await insertAuditRecord(console_.context.db, {
      actor: script,
      action: script,
      subject: script,
      after: { tier: script },
    })
    for (const { body } of [await get('/audit'), await get(`/audit?actor=${encodeURIComponent(script)}`)])
      assert.doesNotMatch(body, /<script>alert/)
  })
})
