import { randomBytes, randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createApiKey, hashApiKey } from '../accounts/api-key.ts'
import { hashPassword, isPasswordOf } from '../accounts/password.ts'
import { findKeyOwner, insertApiKey } from '../db/api-keys.ts'
import type { Db } from '../db/database.ts'
import type { Environment, User } from '../db/schema.ts'
import { findUserByEmail, insertUser } from '../db/users.ts'
import { changeUser } from '../operator/change-user.ts'
import { readPrivateJson, writePrivateJson } from './secrets.ts'

/** An account for trying the service, with a test key and a live key. */
export interface DemoAccount {
  email: string
  /** Undefined if its password was changed. */
  password: string | undefined
  live: string
  test: string
}

const EMAIL = 'demo@localhost.localdomain'
const FILE = 'demo.json'

/** The actor in the audit log for changes that `npm start` makes. */
const ACTOR = 'npm start'

/**
 * Disables the demo account of this data folder, because the service now has a public address, and
 * the account's keys and password are in the log of earlier starts. It does so only once: if an
 * operator enables the account again, it stays enabled.
 *
 * @returns the email address of the disabled account
 */
export async function closeDemoAccount(db: Db, dataDir: string): Promise<string | undefined> {
  const kept = await readPrivateJson<DemoAccount>(dataDir, FILE)
  if (!kept) return undefined
  const user = await findUserByEmail(db, EMAIL)
  if (user) await changeUser(db, user.id, { actor: ACTOR, disabled: true })
  await rm(join(dataDir, FILE))
  return user && EMAIL
}

/**
 * The demo account of this data folder. It is made once. It is made again if the database does not
 * belong to the folder, or if a start with a public address disabled it.
 */
export async function loadDemoAccount(db: Db, dataDir: string, pepper: Buffer): Promise<DemoAccount> {
  const kept = await readPrivateJson<DemoAccount>(dataDir, FILE)
  const user = await findUserByEmail(db, EMAIL)
  if (kept && (await isKnown(db, pepper, kept.live)) && (await isKnown(db, pepper, kept.test)))
    return { ...kept, password: await passwordInForce(user, kept.password) }
  let { password } = kept ?? {}
  const userId = user?.id ?? randomUUID()
  if (!user) {
    password ??= randomBytes(15).toString('base64url')
    const passwordHash = await hashPassword(password)
    await insertUser(db, { id: userId, email: EMAIL, passwordHash, signupNetwork: null, isApproved: true })
  } else if (user.disabled_at && !kept) {
    await changeUser(db, userId, { actor: ACTOR, disabled: false })
  }
  const account = {
    email: EMAIL,
    password,
    live: await createKey(db, { userId, environment: 'live' }, pepper),
    test: await createKey(db, { userId, environment: 'test' }, pepper),
  }
  await writePrivateJson(dataDir, FILE, account)
  return user ? { ...account, password: await passwordInForce(user, password) } : account
}

/** The password, if it still opens the account; its owner or an operator may have changed it. */
async function passwordInForce(user: User | undefined, password: string | undefined): Promise<string | undefined> {
  return password !== undefined && (await isPasswordOf(user?.password_hash, password)) ? password : undefined
}

async function isKnown(db: Db, pepper: Buffer, key: string): Promise<boolean> {
  return (await findKeyOwner(db, hashApiKey(pepper, key))) !== undefined
}

async function createKey(
  db: Db,
  { userId, environment }: { userId: string; environment: Environment },
  pepper: Buffer,
): Promise<string> {
  const key = createApiKey(environment)
  const row = {
    id: randomUUID(),
    user_id: userId,
    created_by: userId,
    environment,
    key_hash: hashApiKey(pepper, key),
    last_four: key.slice(-4),
    label: `Demo ${environment} key`,
  }
  const limits = { keysMax: Number.POSITIVE_INFINITY, othersKeysMax: 0 }
  await db.transaction().execute(async (transaction) => await insertApiKey(transaction, row, limits))
  return key
}
