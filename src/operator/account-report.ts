import Type, { type Static } from 'typebox'
import { KeyAnswer, toKeyAnswer } from '../accounts/key-schema.ts'
import { nullable } from '../catalog/json.ts'
import type { SignupPolicy } from '../config.ts'
import { usageByApi } from '../db/account-usage.ts'
import { listAccountKeys } from '../db/api-keys.ts'
import { listCalls } from '../db/call-log-pages.ts'
import { dayOf } from '../db/call-log-partitions.ts'
import { listConnections } from '../db/connections.ts'
import type { Db } from '../db/database.ts'
import { findUser } from '../db/users.ts'
import { LoggedCallAnswer, toLoggedCall } from '../telemetry/logged-call.ts'
import { describeUser, noSuchUser, UserAnswer } from './change-user.ts'

const DAY_MS = 86_400_000

/** Calls, and failures, in a report. */
const CALLS_MAX = 20

/** An account and its activity: what an operator needs to answer a user's question. */
export const AccountReport = Type.Object({
  user: UserAnswer,
  apis: Type.Array(
    Type.Object({
      day: Type.String({ description: 'UTC day: today or yesterday' }),
      api: Type.String(),
      calls: Type.Integer({ description: 'All calls, including refused and failed calls' }),
      refused: Type.Integer({ description: 'Calls answered with 4xx' }),
      failed: Type.Integer({ description: 'Calls answered with 5xx, including calls refused before the queue' }),
    }),
    { description: 'Calls by API, today and yesterday' },
  ),
  calls: Type.Array(LoggedCallAnswer, { description: `The last ${CALLS_MAX} calls of the account` }),
  failures: Type.Array(LoggedCallAnswer, { description: `The last ${CALLS_MAX} calls of the account with an error` }),
  keys: Type.Array(KeyAnswer, {
    description: 'Keys that count against the plan of the account and are neither revoked nor expired',
  }),
  connections: Type.Array(
    Type.Object({
      id: Type.String(),
      application: Type.String(),
      createdAt: Type.String({ format: 'date-time' }),
      lastUsedAt: nullable(Type.String({ format: 'date-time' })),
    }),
  ),
})
export type AccountReport = Static<typeof AccountReport>

/** @throws GatewayError USER_NOT_FOUND */
export async function reportAccount(
  db: Db,
  id: string,
  { signup, now }: { signup: SignupPolicy; now: number },
): Promise<AccountReport> {
  const user = await findUser(db, id)
  if (!user) throw noSuchUser()
  const page = { limit: CALLS_MAX, after: undefined }
  const [apis, recent, failed, keys, connections] = await Promise.all([
    usageByApi(db, id, dayOf(now - DAY_MS)),
    listCalls(db, { accountId: id }, page),
    listCalls(db, { accountId: id, isFailure: true }, page),
    listAccountKeys(db, id),
    listConnections(db, id),
  ])
  return {
    user: describeUser(user, signup),
    apis: apis.map(({ slug, ...counts }) => ({ api: slug, ...counts })),
    calls: recent.calls.map(toLoggedCall),
    failures: failed.calls.map(toLoggedCall),
    keys: keys.map(toKeyAnswer),
    connections: connections.map((connection) => ({
      id: connection.id,
      application: connection.client_name,
      createdAt: connection.created_at.toISOString(),
      lastUsedAt: connection.last_used_at?.toISOString() ?? null,
    })),
  }
}
