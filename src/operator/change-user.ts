import Type, { type Static } from 'typebox'
import { missingForLiveCalls } from '../accounts/trust.ts'
import { nullable } from '../catalog/json.ts'
import type { SignupPolicy } from '../config.ts'
import { deleteAccountLinks } from '../db/account-links.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { User } from '../db/schema.ts'
import { revokeSessions } from '../db/sessions.ts'
import { lockUser, updateUser } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { PLAN_OF_TIER, TIERS } from '../limits/plans.ts'

export const TierName = Type.Enum([...TIERS])

/** An account as operators see it. */
export const UserAnswer = Type.Object({
  id: Type.String({ format: 'uuid' }),
  email: Type.String(),
  tier: TierName,
  plan: Type.String(),
  disabled: Type.Boolean(),
  approved: Type.Boolean({
    description:
      'Whether an operator has approved the account, so that its live calls need no verified email address. If the gateway sends mail, joining a team still needs a verified address',
  }),
  emailVerified: Type.Boolean({ description: 'Whether the email address of the account is verified' }),
  liveCallsNeed: nullable(
    Type.Enum(['verification', 'approval'], {
      description:
        'Why the gateway refuses live calls under SIGNUP: they need a verified email address, or an approval; null: it accepts them',
    }),
  ),
  createdAt: Type.String({ format: 'date-time' }),
})

export const UsersAnswer = Type.Object({
  users: Type.Array(UserAnswer),
  more: Type.Boolean({ description: 'Whether more accounts match than are listed' }),
})

export const UserChange = Type.Object(
  { tier: Type.Optional(TierName), disabled: Type.Optional(Type.Boolean()), approved: Type.Optional(Type.Boolean()) },
  { minProperties: 1 },
)

/**
 * Changes an account, and records the values before and after in the audit log. Disabling an
 * account ends its sessions, so that they do not work again after it is enabled.
 *
 * @throws GatewayError USER_NOT_FOUND
 */
export function changeUser(
  db: Db,
  id: string,
  { actor, tier, disabled, approved }: Static<typeof UserChange> & { actor: string },
): Promise<User> {
  return db.transaction().execute(async (transaction) => {
    const before = await lockUser(transaction, id)
    if (!before) throw noSuchUser()
    const disabledAt = disabled ? (before.disabled_at ?? new Date()) : null
    const approvedAt = approved ? (before.approved_at ?? new Date()) : null
    const after = await updateUser(transaction, id, {
      ...(tier === undefined ? {} : { tier }),
      ...(disabled === undefined ? {} : { disabled_at: disabledAt }),
      ...(approved === undefined ? {} : { approved_at: approvedAt }),
    })
    if (disabled) {
      await revokeSessions(transaction, id)
      await deleteAccountLinks(transaction, id)
    }
    await insertAuditRecord(transaction, {
      actor,
      action: 'user.update',
      subject: id,
      before: auditedUser(before),
      after: auditedUser(after),
    })
    return after
  })
}

/**
 * Operators name accounts by id, so the hint says how to find an id, and not that somebody has to
 * sign up first.
 */
export function noSuchUser(): GatewayError {
  const words = { message: 'No account has this id.', hint: 'Find its id with GET /v1/operator/users' }
  return new GatewayError('USER_NOT_FOUND', words)
}

function auditedUser({ tier, disabled_at, approved_at }: User): object {
  return { tier, disabled: disabled_at !== null, approved: approved_at !== null }
}

export function describeUser(user: User, policy: SignupPolicy): Static<typeof UserAnswer> {
  return {
    id: user.id,
    email: user.email,
    tier: user.tier,
    plan: PLAN_OF_TIER[user.tier],
    disabled: user.disabled_at !== null,
    approved: user.approved_at !== null,
    emailVerified: user.email_verified_at !== null,
    liveCallsNeed: missingForLiveCalls(user, policy) ?? null,
    createdAt: user.created_at.toISOString(),
  }
}
