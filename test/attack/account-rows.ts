import { randomUUID } from 'node:crypto'
import { type Account, send, signUp, sql } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** How often the attack repeats each request. */
const TRIES = 60

/** The rows of teams, sessions, keys and additions to teams that one account may make. */
export const accountRows: Scenario = {
  name: 'account-rows',
  claim:
    'an account has at most 20 teams and 20 sessions, may try 20 unknown addresses a minute, and leaves a team owner half of the key slots',
  // This gateway does not throttle log-ins. Sessions must be bounded even then.
  environment: { LOGIN_FAILURES_PER_MINUTE: '0' },
  run: async (gateway): Promise<Outcome> => {
    const [owner, admin] = [await signUp(gateway), await signUp(gateway)]
    const made = async (route: string, token: string, bodyOf: () => object) => {
      let count = 0
      for (let index = 0; index < TRIES; index += 1) {
        if ((await send(gateway, route, { token, body: bodyOf() })).status === 201) count += 1
      }
      return count
    }
    const teams = await made('/v1/teams', admin.token, () => ({ name: 'Team' }))
    const { team } = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'Mine' } })).body
    const members = `/v1/teams/${team.id}/members`
    await send(gateway, members, { token: owner.token, body: { email: admin.email, role: 'admin' } })
    const unknown = await countOf(gateway, 404, () => ({
      route: members,
      token: owner.token,
      body: { email: `${randomUUID()}@example.com` },
    }))
    const keys = await made('/v1/keys', admin.token, () => ({ teamId: team.id, environment: 'test' }))
    const own = (await send(gateway, '/v1/keys', { token: owner.token, body: { environment: 'test' } })).status
    const sessions = await sessionsAfterLogIns(gateway, admin)
    return {
      isPassed: teams <= 20 && unknown <= 20 && keys <= 25 && own === 201 && sessions <= 20,
      figures: {
        tries: TRIES,
        teams,
        'unknown addresses': unknown,
        'team keys of an admin': keys,
        "owner's next key": own,
        sessions,
      },
    }
  },
}

async function countOf(
  gateway: Gateway,
  status: number,
  requestOf: () => { route: string; token: string; body: object },
): Promise<number> {
  let count = 0
  for (let index = 0; index < TRIES; index += 1) {
    const { route, ...request } = requestOf()
    if ((await send(gateway, route, request)).status === status) count += 1
  }
  return count
}

/** Logs in many times, and returns how many sessions the account then has. */
async function sessionsAfterLogIns(gateway: Gateway, { id, email, password }: Account): Promise<number> {
  for (let index = 0; index < TRIES / 2; index += 1) {
    await send(gateway, '/v1/auth/login', { body: { email, password } })
  }
  return (await sql(gateway, 'select 1 from sessions where user_id = $1', [id])).length
}
