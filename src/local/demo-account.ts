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

/** An account to try the service with, and a key of each environment. */
export interface DemoAccount {
  email: string
  /** Undefined if the account has another password than it was made with. */
  password: string | undefined
  live: string
  test: string
}

const EMAIL = 'demo@localhost.localdomain'
const FILE = 'demo.json'

/** The name that the audit log has for what a start does to the account. */
const ACTOR = 'npm start'

/**
 * Disables the demo account of this data folder, because its keys and its password are in the log
 * of earlier starts, and the service now has a public address. It does so once: an operator who
 * enables the account again means it.
 *
 * @returns the address of the account that was disabled
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
 * The demo account of this data folder: made once, and again if database and folder no longer
 * belong together, or if a start with a public address disabled it.
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

/**
 * The password as long as it opens the account: its owner or an operator may have given it another
 * password.
 */
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
