import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { sql } from 'kysely'
import { Mailer } from '../../src/accounts/mailer.ts'
import { type NoticeDeps, sendExpiryNotices, sendNotices } from '../../src/accounts/notices.ts'
import { type Db, openDatabase } from '../../src/db/database.ts'
import { insertUser } from '../../src/db/users.ts'
import { createLog } from '../../src/log.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { type Services, startServices } from '../support/services.ts'

const DAY_MS = 86_400_000

describe('notices by mail', () => {
  const log = createLog({ level: 'silent', pretty: false }, 'test')
  let services: Services
  let db: Db
  let mail: MailServer
  let deps: NoticeDeps

  before(async () => {
    services = await startServices()
    db = openDatabase(services.databaseUrl, log)
    mail = await startMailServer()
    const mailer = new Mailer({ smtpUrl: mail.url, from: 'gateway@example.com' })
    deps = { db, log, mailer, config: { http: { baseUrl: 'http://localhost:3000' } as NoticeDeps['config']['http'] } }
  })
  beforeEach(() => {
    mail.recipientAnswer = '250 test'
  })
  after(async () => {
    await db.destroy()
    await mail.close()
    await services.stop()
  })

  const makeAccount = async ({ isProven = true } = {}) => {
    const account = { id: randomUUID(), email: `${randomUUID()}@example.com` }
    await insertUser(db, { ...account, passwordHash: 'x', signupNetwork: null })
    if (isProven) await sql`update users set email_verified_at = now() where id = ${account.id}`.execute(db)
    return account
  }
  const makeKey = async (userId: string, { madeDaysAgo = 30, expiresInDays = 6, label = 'of the robot' } = {}) => {
    const id = randomUUID()
    const at = (days: number) => new Date(Date.now() + days * DAY_MS)
    await db
      .insertInto('api_keys')
      .values({
        ...{ id, user_id: userId, environment: 'live', key_hash: randomBytes(32), last_four: 'abcd', label },
        ...{ created_at: at(-madeDaysAgo), expires_at: at(expiresInDays), created_by: userId },
      })
      .execute()
    return id
  }
  const mailsTo = ({ email }: { email: string }) => mail.mails.filter(({ to }) => to === email)

  it('a mail announces the end of a key seven days and one day before, once each, whatever the number of nodes', async () => {
    const account = await makeAccount()
    const key = await makeKey(account.id)
    await Promise.all([sendExpiryNotices(deps), sendExpiryNotices(deps), sendExpiryNotices(deps)])
    assert.equal(mailsTo(account).length, 1)
    assert.match(mailsTo(account)[0]?.text ?? '', /agw_live_.*abcd.*of the robot/s)
    assert.match(mailsTo(account)[0]?.text ?? '', /account\/settings/)
    await db
      .updateTable('api_keys')
      .set({ expires_at: new Date(Date.now() + DAY_MS / 2) })
      .where('id', '=', key)
      .execute()
    await sendExpiryNotices(deps)
    await sendExpiryNotices(deps)
    assert.equal(mailsTo(account).length, 2)
  })

  it('one mail names all keys of an account', async () => {
    const account = await makeAccount()
    await makeKey(account.id, { label: 'red' })
    await makeKey(account.id, { label: 'blue', expiresInDays: 0.5 })
    await sendExpiryNotices(deps)
    assert.equal(mailsTo(account).length, 1)
    assert.match(mailsTo(account)[0]?.text ?? '', /blue.*red/s)
  })

  it('a label, which an admin of a team may write, is one line of the mail to the owner', async () => {
    const account = await makeAccount()
    await makeKey(account.id, { label: 'robot)\n\nYour account is locked.\u202e\n\n(' })
    await sendExpiryNotices(deps)
    assert.match(mailsTo(account)[0]?.text ?? '', /\(robot\) Your account is locked\. \(\): \d{4}-/)
  })

  it('no mail names a key that was short-lived, rotated, revoked or expires later, and none goes to people who declined or have no proven address', async () => {
    const [short, other, off, unproven] = [
      await makeAccount(),
      await makeAccount(),
      await makeAccount(),
      await makeAccount({ isProven: false }),
    ]
    await makeKey(short.id, { madeDaysAgo: 0, expiresInDays: 6 })
    await makeKey(other.id, { expiresInDays: 8 })
    const rotated = await makeKey(other.id)
    await db.updateTable('api_keys').set({ replaced_by: randomUUID() }).where('id', '=', rotated).execute()
    const revoked = await makeKey(other.id)
    await db.updateTable('api_keys').set({ revoked_at: new Date() }).where('id', '=', revoked).execute()
    await makeKey(off.id)
    await sql`update users set takes_notices = false where id = ${off.id}`.execute(db)
    await makeKey(unproven.id)
    await sendExpiryNotices(deps)
    for (const account of [short, other, off, unproven]) assert.deepEqual(mailsTo(account), [])
  })

  it('a mail that the mail server refuses for now is sent later, and an address that the mail server refuses for good gets no further mail', async () => {
    const [later, never] = [await makeAccount(), await makeAccount()]
    const notice = [{ kind: 'month-80', period: '2026-11' } as const]
    const write = () => ({ subject: 'A test', lines: ['Some words.'] })
    const send = (accountId: string) => sendNotices(deps, { accountId, notices: notice }, write)
    mail.recipientAnswer = '451 later'
    assert.equal(await send(later.id), false)
    mail.recipientAnswer = '550 no such mailbox'
    assert.equal(await send(never.id), false)
    mail.recipientAnswer = '250 test'
    assert.deepEqual([await send(later.id), await send(later.id), await send(never.id)], [true, false, false])
  })
})
