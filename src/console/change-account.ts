import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { type CancelAccountDeps, cancelAccountCalls } from '../calls/cancel-account-calls.ts'
import type { User } from '../db/schema.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { actorOf } from '../operator/actor.ts'
import { changeUser, type UserChange } from '../operator/change-user.ts'

/**
 * Changes an account for the operator who sent the request. If the account may make no more calls,
 * its waiting calls are cancelled and never sent.
 *
 * @throws GatewayError USER_NOT_FOUND
 */
export async function changeAccount(
  deps: CancelAccountDeps,
  request: Pick<FastifyRequest, 'headers' | 'ip' | 'log'>,
  { id, ...change }: Static<typeof UserChange> & { id: string },
): Promise<User> {
  const { db, redis } = deps
  const actor = actorOf(request)
  const user = await withAnnouncement({ redis, log: request.log }, [id], () => changeUser(db, id, { ...change, actor }))
  await cancelAccountCalls(deps, id)
  return user
}
