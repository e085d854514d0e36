import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { hashApiKey } from '../../src/accounts/api-key.ts'
import { hashPassword, isPasswordOf } from '../../src/accounts/password.ts'
import { findKeyOwner } from '../../src/db/api-keys.ts'
import { openDatabase } from '../../src/db/database.ts'
import { findUserByEmail, updatePasswordHash } from '../../src/db/users.ts'
import { closeDemoAccount, loadDemoAccount } from '../../src/local/demo-account.ts'
import { createLog } from '../../src/log.ts'
import { changeUser } from '../../src/operator/change-user.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/**
 * Loads the demo account as each start does, and gives it a password as its owner or an operator
 * does.
 */
async function open(t: TestContext) {
  const services = await startServices()
  const db = openDatabase(services.databaseUrl, log)
  const folder = await mkdtemp(join(tmpdir(), 'agw-demo-'))
  const pepper = randomBytes(32)
  t.after(async () => {
    await db.destroy()
    await services.stop()
    await rm(folder, { recursive: true })
  })
  const load = () => loadDemoAccount(db, folder, pepper)
  const userOf = async (email: string) => (await findUserByEmail(db, email)) ?? assert.fail()
  return {
    load,
    userOf,
    close: () => closeDemoAccount(db, folder),
    enable: async (email: string) =>
      changeUser(db, (await userOf(email)).id, { actor: 'an operator', disabled: false }),
    isKeyRefused: async (key: string) => (await findKeyOwner(db, hashApiKey(pepper, key)))?.disabledAt !== null,
    forget: () => rm(join(folder, 'demo.json')),
    setPassword: async (email: string, password: string) =>
      assert.ok(await updatePasswordHash(db, await userOf(email), await hashPassword(password))),
  }
}

test('the demo account is the same at each start, and its password is shown as long as it opens the account', async (t) => {
  const { load, userOf, setPassword } = await open(t)
  const first = await load()
  const { email, password = '' } = first
  assert.ok(await isPasswordOf((await userOf(email)).password_hash, password))
  assert.deepEqual(await load(), first)
  await setPassword(email, 'another password')
  assert.deepEqual(await load(), { ...first, password: undefined })
  await setPassword(email, password)
  assert.deepEqual(await load(), first)
})

test('the demo account whose file was lost gets new keys, and no password is shown that does not open it', async (t) => {
  const { load, forget } = await open(t)
  const first = await load()
  await forget()
  const again = await load()
  assert.notEqual(again.live, first.live)
  assert.equal(again.password, undefined)
  assert.deepEqual(await load(), again)
})

test('the demo account of earlier starts is disabled at a start with a public address, once, and comes back at a local start', async (t) => {
  const { load, close, enable, isKeyRefused } = await open(t)
  assert.equal(await close(), undefined, 'there is none')
  const { email, live } = await load()
  assert.equal(await isKeyRefused(live), false)
  assert.equal(await close(), email)
  assert.equal(await isKeyRefused(live), true)
  await enable(email)
  assert.equal(await close(), undefined)
  assert.equal(await isKeyRefused(live), false, 'an operator enabled it again')
  await load()
  await close()
  assert.equal(await isKeyRefused((await load()).live), false)
})
