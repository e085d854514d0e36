import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { insertAuditRecord } from '../../src/db/audit-log.ts'
import { insertUser } from '../../src/db/users.ts'
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
      // A change that is made meanwhile moves no entry to another page.
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
    for (const query of ['from=2026-13-40', 'from=2026-02-30', 'from=yesterday', 'cursor=x', 'limit=0', 'actor=%00'])
      assert.equal((await get(`/v1/operator/audit?${query}`)).statusCode, 400, query)
  })

  it('the audit log can be exported with one line of JSON for each change, in the API by Accept and in the console as a file', async () => {
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

  it('the audit log is not read for a HEAD of its exports', async (t) => {
    const select = t.mock.method(console_.context.db, 'selectFrom')
    for (const [url, accept] of [
      ['/audit.ndjson', '*/*'],
      ['/v1/operator/audit', 'application/x-ndjson'],
    ] as const) {
      const answer = await console_.app.inject({ method: 'HEAD', url, headers: { ...console_.bearer, accept } })
      assert.deepEqual([answer.statusCode, answer.body], [200, ''], url)
      assert.match(String(answer.headers['content-type']), /^application\/x-ndjson/)
    }
    const reads = () => select.mock.calls.filter(({ arguments: [table] }) => String(table) === 'audit_log').length
    assert.equal(reads(), 0)
    await get('/audit.ndjson')
    assert.ok(reads() > 0)
  })

  it('the audit log is a page with filters that stay in its links, and texts that stay texts', async () => {
    const page = (await get('/audit?action=upstream&limit=2')).body
    assert.match(page, /subject-6.*subject-4/s)
    assert.doesNotMatch(page, /subject-2</)
    const [, older = ''] = /href="([^"]+)" rel="next"/.exec(page) ?? []
    assert.match((await get(older.replaceAll('&#38;', '&'))).body, /subject-2/)
    assert.match((await get('/audit?actor=nobody')).body, /No change matches\./)
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

  it('the list of accounts has each account once, page by page, and the account whose whole address it is first', async () => {
    const { db } = console_.context
    const emails = Array.from({ length: 120 }, (_, number) => `ann${number}@example.com`)
    for (const email of [...emails, 'xann7@example.com'])
      await insertUser(db, { id: randomUUID(), email, passwordHash: null, signupNetwork: null })
    // The accounts of a bulk import have the same time, so only their ids order them.
    await sql`update users set created_at = '2026-01-01T00:00:00Z'`.execute(db)
    const emailsOf = (page: string) =>
      [...page.matchAll(/<a [^>]*href="\/accounts\/[0-9a-f-]{36}">([^<]+)<\/a>/g)].map(([, email]) => email)
    const seen: (string | undefined)[] = []
    const sizes: number[] = []
    let url: string | undefined = '/accounts?q=@example.com&unapproved='
    while (url) {
      const { body } = await get(url)
      const found = emailsOf(body)
      seen.push(...found)
      sizes.push(found.length)
      url = /<a href="(\/accounts\?[^"]*cursor=[^"]*)">Earlier accounts/
        .exec(body)?.[1]
        ?.replaceAll(/&(?:#38|amp);/g, '&')
    }
    assert.deepEqual(sizes, [50, 50, 21])
    assert.deepEqual(new Set(seen), new Set([...emails, 'xann7@example.com']))
    assert.deepEqual(emailsOf((await get('/accounts?q=ANN7@example.com')).body), [
      'ann7@example.com',
      'xann7@example.com',
    ])
    assert.equal((await get('/accounts?q=%00')).statusCode, 400)
    assert.equal((await get('/accounts?cursor=x')).statusCode, 400)
    assert.match((await get('/accounts?q=%3Cb%3E')).body, /No account matches\./)
  })

  it('a form that changes an account changes only the members that it names, and the audit log records it like a change by the command line', async () => {
    const { db } = console_.context
    const id = randomUUID()
    await insertUser(db, { id, email: 'form@example.com', passwordHash: null, signupNetwork: null })
    const send = async (payload: string, path = `/accounts/${id}`) => {
      const headers = { ...console_.bearer, 'content-type': 'application/x-www-form-urlencoded' }
      return (await console_.app.inject({ method: 'POST', url: path, headers, payload })).statusCode
    }
    const user = async () => (await get(`/v1/operator/users?email=form@example.com`)).json().users[0]
    const before = await user()
    for (const wrong of ['', 'tier=root', 'disabled=yes', 'tier=pro&x=1', '__proto__=1', 'tier=pro&approved='])
      assert.equal(await send(wrong), 400, wrong)
    assert.equal(await send('tier=pro', '/accounts/none'), 404)
    assert.deepEqual(await user(), before)
    for (const [payload, change] of [
      ['tier=pro', { tier: 'pro', plan: 'Pro' }],
      ['approved=true', { approved: true }],
      ['disabled=true', { disabled: true }],
      ['approved=false&disabled=false', { approved: false, disabled: false }],
    ] as const) {
      const earlier = await user()
      assert.equal(await send(payload), 303, payload)
      assert.deepEqual({ ...(await user()), liveCallsNeed: null }, { ...earlier, ...change, liveCallsNeed: null })
    }
    const [last] = (await get(`/v1/operator/audit?subject=${id}`)).json().records
    assert.deepEqual(
      [last.action, last.before, last.after],
      [
        'user.update',
        { tier: 'pro', disabled: true, approved: true },
        { tier: 'pro', disabled: false, approved: false },
      ],
    )
  })
})
