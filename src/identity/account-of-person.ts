import { randomUUID } from 'node:crypto'
import { isPasswordOf } from '../accounts/password.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import { asciiEmail } from '../db/email-address.ts'
import { findUserByIdentity, hasIdentity, type IdentityName, setIdentity } from '../db/identities.ts'
import { sqlState, UNIQUE_VIOLATION } from '../db/postgres-errors.ts'
import type { User } from '../db/schema.ts'
import { findUser, findUserByEmail, insertUser, lockUser, updateUser, verifyEmail } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import type { Person } from './oidc-sign-in.ts'

/**
 * An email address that an account may have, in the form in which it is stored: a plain local part
 * (dot-atom, RFC 5322, 3.2.3), and a host.
 */
const ADDRESS = /^(?=.{3,254}$)[\w!#$%&'*+/=?^`{|}~.-]{1,64}@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i

/** The actor in the audit log for changes that a sign-in makes to an account. */
const ACTOR = 'sign-in at the provider'

/**
 * An account with the address of a person who has not yet proven that the account is theirs. If
 * nobody has proven the account's address, somebody else may have made the account; the person may
 * then replace it by a new account. Otherwise the account is linked to somebody else at the
 * provider, and only its password proves that it is the person's.
 */
export interface Claim extends IdentityName {
  userId: string
  email: string
  mayStartAnew: boolean
  hasPassword: boolean
}

/** The account to which a sign-in leads, or to which it will lead after a further proof. */
export type Destination =
  | { user: User; isLinked: boolean; claim?: undefined }
  | { claim: Claim; user?: undefined; isLinked?: undefined }

/**
 * Finds or makes the account of a person. If no account is linked to the person, the address that
 * the provider has proven decides. If no account has this address, the person gets a new account.
 * If an account has proven this address too, it is linked to the person. The address of an account
 * never changes here.
 *
 * @throws GatewayError FORBIDDEN for a person without a proven address, and for a disabled account
 */
export async function accountOfPerson(db: Db, person: Person, signupNetwork: string | null): Promise<Destination> {
  const known = await findUserByIdentity(db, person)
  if (known) return { user: enabled(known), isLinked: false }
  const email = provenAddress(person)
  if (email === undefined) {
    throw new GatewayError('FORBIDDEN', {
      message: 'The sign-in provider has not confirmed that your email address is verified.',
      hint: 'Verify your email address there, or log in with email and password',
    })
  }
  try {
    return await accountOfAddress(db, { person, email, signupNetwork })
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    // Another tab, or a sign-up, made the account first.
    const user = await findUserByIdentity(db, person)
    return user
      ? { user: enabled(user), isLinked: false }
      : await accountOfAddress(db, { person, email, signupNetwork })
  }
}

interface Newcomer {
  person: IdentityName
  email: string
  signupNetwork: string | null
}

function accountOfAddress(db: Db, { person, email, signupNetwork }: Newcomer): Promise<Destination> {
  return db.transaction().execute(async (transaction): Promise<Destination> => {
    const found = await findUserByEmail(transaction, email)
    const user = found && (await lockUser(transaction, found.id))
    if (!user) return { user: await insertPerson(transaction, { person, email, signupNetwork }), isLinked: false }
    enabled(user)
    // Another tab linked the person between the first look-up and the lock.
    if ((await findUserByIdentity(transaction, person))?.id === user.id) return { user, isLinked: false }
    const isProven = user.email_verified_at !== null
    // An address that the provider gave to a second person is no proof of whose the account is.
    if (!isProven || (await hasIdentity(transaction, user.id, person.issuer))) {
      const { issuer, subject } = person
      const hasPassword = user.password_hash !== null
      return { claim: { issuer, subject, userId: user.id, email: user.email, mayStartAnew: !isProven, hasPassword } }
    }
    await link(transaction, user, person)
    return { user, isLinked: true }
  })
}

/**
 * Links an account whose password the person gives.
 *
 * @param client as the hashes of passwords count it
 * @throws GatewayError INVALID_CREDENTIALS
 */
export async function claimByPassword(
  db: Db,
  claim: Claim,
  { password, client }: { password: string; client: string },
): Promise<User> {
  const compared = await findUser(db, claim.userId)
  const isOwner = await isPasswordOf(compared?.password_hash, password, client)
  if (!isOwner) throw wrongPassword()
  return await db.transaction().execute(async (transaction) => {
    const user = await lockUser(transaction, claim.userId)
    if (user?.password_hash !== compared?.password_hash || user?.email !== claim.email) throw wrongPassword()
    await link(transaction, enabled(user), claim)
    return await existing(transaction, user.id)
  })
}

/**
 * Deletes an account whose address nobody has proven, with everything that its maker stored in it.
 * Makes an account with the same address and plan for the person who has proven the address.
 *
 * @throws GatewayError FORBIDDEN if somebody has proven the address meanwhile
 */
export async function claimAnew(db: Db, claim: Claim, signupNetwork: string | null): Promise<User> {
  return await db.transaction().execute(async (transaction) => {
    const former = await lockUser(transaction, claim.userId)
    if (!former || former.email !== claim.email || former.email_verified_at !== null || !claim.mayStartAnew) {
      throw new GatewayError('FORBIDDEN', {
        message: 'The account has changed since you started to sign in.',
        hint: 'Sign in again',
      })
    }
    await transaction.deleteFrom('users').where('id', '=', enabled(former).id).execute()
    const { id } = await insertPerson(transaction, { person: claim, email: former.email, signupNetwork })
    const user = await updateUser(transaction, id, { tier: former.tier })
    const before = { accountId: former.id }
    await insertAuditRecord(transaction, { actor: ACTOR, action: 'user.start-anew', subject: id, before })
    return user
  })
}

/** Makes an account without a password. It counts as proven and approved. */
async function insertPerson(transaction: Db, { person, email, signupNetwork }: Newcomer): Promise<User> {
  const id = randomUUID()
  await insertUser(transaction, { id, email, passwordHash: null, signupNetwork, isApproved: true })
  await verifyEmail(transaction, id, email)
  await setIdentity(transaction, id, person)
  return await existing(transaction, id)
}

async function link(transaction: Db, user: User, { issuer, subject }: IdentityName): Promise<void> {
  await setIdentity(transaction, user.id, { issuer, subject })
  await verifyEmail(transaction, user.id, user.email)
  // The record does not name the person, because it outlives the account.
  const after = { issuer }
  await insertAuditRecord(transaction, { actor: ACTOR, action: 'user.link', subject: user.id, after })
}

async function existing(db: Db, id: string): Promise<User> {
  const user = await findUser(db, id)
  if (!user) throw new Error('the account has gone within its own transaction')
  return user
}

/** @throws GatewayError FORBIDDEN */
function enabled(user: User): User {
  if (user.disabled_at === null) return user
  throw new GatewayError('FORBIDDEN', {
    message: 'The account is disabled.',
    hint: 'Ask the operator of this gateway',
  })
}

function wrongPassword(): GatewayError {
  return new GatewayError('INVALID_CREDENTIALS', {
    message: 'The password is wrong.',
    hint: 'Enter it again',
    tokens: { param: 'password' },
  })
}

/**
 * The address of a person, if one document of the provider names the address and says that it is
 * verified. Only `true` counts (OpenID Connect Core 1.0, 5.1).
 */
function provenAddress({ claims, userInfo }: Person): string | undefined {
  for (const { email, email_verified: isVerified } of [claims, userInfo]) {
    if (typeof email === 'string' && isVerified === true && ADDRESS.test(asciiEmail(email))) return asciiEmail(email)
  }
  return undefined
}
