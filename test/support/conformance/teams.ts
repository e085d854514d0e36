import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Account, signUp } from '../client.ts'
import { assertFailure, isDateTime, NOBODY, type Statement, UUID, type World } from './world.ts'

/** A team of `owner` with a member of each role. */
interface Team {
  id: string
  owner: Account
  admin: Account
  member: Account
  stranger: Account
  memberIds: Record<'owner' | 'admin' | 'member', string>
}

/** The team that statements share if they change nothing that another statement sees. */
function teamOf(world: World): Promise<Team> {
  world.memory.team ??= makeTeam(world)
  return world.memory.team as Promise<Team>
}

async function makeTeam({ gateway, send }: World): Promise<Team> {
  const [owner, admin, member, stranger] = await Promise.all([
    signUp(gateway),
    signUp(gateway),
    signUp(gateway),
    signUp(gateway),
  ])
  const { body } = await send('/v1/teams', { token: owner.token, body: { name: 'Weather' } })
  const { id } = body.team
  const add = async (email: string, role: string) =>
    (await send(`/v1/teams/${id}/members`, { token: owner.token, body: { email, role } })).status
  assert.deepEqual([await add(admin.email, 'admin'), await add(member.email, 'member')], [201, 201])
  const { members } = (await send(`/v1/teams/${id}`, { token: owner.token })).body
  const idOf = (role: string) => members.find((row: { role: string }) => row.role === role).id
  const memberIds = { owner: idOf('owner'), admin: idOf('admin'), member: idOf('member') }
  return { id, owner, admin, member, stranger, memberIds }
}

/** Statements about teams. */
export const TEAM_STATEMENTS: Statement[] = [
  {
    says: 'POST /v1/teams answers 201 with team {id, name, ownerId, createdAt, updatedAt}',
    holds: async ({ send, free }) => {
      const { status, body } = await send('/v1/teams', { token: free.token, body: { name: 'Rain' } })
      assert.equal(status, 201)
      assert.match(body.team.id, UUID)
      assert.deepEqual([body.team.name, body.team.ownerId], ['Rain', free.id])
      assert.ok(isDateTime(body.team.createdAt) && isDateTime(body.team.updatedAt))
    },
  },
  {
    says: 'the name of a team may have 100 characters, and a name of 101 characters or no name is answered 400',
    holds: async ({ send, free }) => {
      const make = (body: object) => send('/v1/teams', { token: free.token, body })
      assert.equal((await make({ name: 'x'.repeat(100) })).status, 201)
      assertFailure(await make({ name: 'x'.repeat(101) }), 400, 'VALIDATION_ERROR')
      assertFailure(await make({}), 400, 'VALIDATION_ERROR')
    },
  },
  {
    says: "GET /v1/teams lists the caller's teams",
    holds: async (world) => {
      const { id, member, stranger } = await teamOf(world)
      const idsOf = async ({ token }: Account) =>
        (await world.send('/v1/teams', { token })).body.teams.map((team: { id: string }) => team.id)
      assert.deepEqual([await idsOf(member), await idsOf(stranger)], [[id], []])
    },
  },
  {
    says: 'GET /v1/teams/{id} shows team, members, keys and yourRole to each member',
    holds: async (world) => {
      const team = await teamOf(world)
      for (const role of ['owner', 'admin', 'member'] as const) {
        const { status, body } = await world.send(`/v1/teams/${team.id}`, { token: team[role].token })
        assert.deepEqual([status, body.yourRole, body.team.id], [200, role, team.id])
        assert.deepEqual([body.members.length, body.keys], [3, []])
      }
    },
  },
  {
    says: 'a team is answered 404 if the caller is no member, if it does not exist, and if its id is malformed',
    holds: async (world) => {
      const { id, stranger } = await teamOf(world)
      for (const name of [id, NOBODY, 'no-uuid']) {
        assertFailure(await world.send(`/v1/teams/${name}`, { token: stranger.token }), 404, 'TEAM_NOT_FOUND')
      }
    },
  },
  {
    says: 'owner and admin can rename a team, a member is answered 403 and a stranger 404',
    holds: async (world) => {
      const team = await teamOf(world)
      const rename = (account: Account) =>
        world.send(`/v1/teams/${team.id}`, { method: 'PUT', token: account.token, body: { name: 'Snow' } })
      for (const account of [team.owner, team.admin]) {
        const { status, body } = await rename(account)
        assert.deepEqual([status, body.team.name], [200, 'Snow'])
      }
      assertFailure(await rename(team.member), 403, 'FORBIDDEN')
      assertFailure(await rename(team.stranger), 404, 'TEAM_NOT_FOUND')
    },
  },
  {
    says: 'only owner and admin can add a member, an unknown email is answered 404, and a present member 409',
    holds: async (world) => {
      const team = await teamOf(world)
      const add = (account: Account, email: string) =>
        world.send(`/v1/teams/${team.id}/members`, { token: account.token, body: { email } })
      assertFailure(await add(team.member, team.stranger.email), 403, 'FORBIDDEN')
      assertFailure(await add(team.admin, `${randomUUID()}@example.com`), 404, 'USER_NOT_FOUND')
      assertFailure(await add(team.owner, team.member.email), 409, 'ALREADY_MEMBER')
    },
  },
  {
    says: 'a new member has the role member by default, and nobody is added as owner',
    holds: async (world) => {
      const { gateway, send } = world
      const [owner, other] = await Promise.all([signUp(gateway), signUp(gateway)])
      const { team } = (await send('/v1/teams', { token: owner.token, body: { name: 'Hail' } })).body
      const path = `/v1/teams/${team.id}/members`
      const body = { email: other.email }
      const asOwner = await send(path, { token: owner.token, body: { ...body, role: 'owner' } })
      assertFailure(asOwner, 400, 'VALIDATION_ERROR')
      assert.equal((await send(path, { token: owner.token, body })).status, 201)
      assert.equal((await send(`/v1/teams/${team.id}`, { token: other.token })).body.yourRole, 'member')
    },
  },
  {
    says: 'only the owner can change roles, to admin or member',
    holds: async (world) => {
      const team = await teamOf(world)
      const change = (account: Account, role: string, memberId = team.memberIds.member) =>
        world.send(`/v1/teams/${team.id}/members/${memberId}`, { method: 'PUT', token: account.token, body: { role } })
      assertFailure(await change(team.admin, 'admin'), 403, 'FORBIDDEN')
      assertFailure(await change(team.member, 'admin'), 403, 'FORBIDDEN')
      assertFailure(await change(team.owner, 'owner'), 400, 'VALIDATION_ERROR')
      assertFailure(await change(team.owner, 'admin', NOBODY), 404, 'MEMBER_NOT_FOUND')
      assert.deepEqual(
        [(await change(team.owner, 'admin')).status, (await change(team.owner, 'member')).status],
        [200, 200],
      )
      assertFailure(await change(team.owner, 'member', team.memberIds.owner), 403, 'OWNER_IMMUTABLE')
    },
  },
  {
    says: 'the owner, an admin or the member can remove a member, another member is answered 403, and nobody can remove the owner',
    holds: async (world) => {
      const { gateway, send } = world
      const team = await teamOf(world)
      const path = `/v1/teams/${team.id}/members`
      const remove = (account: Account, id: string) => send(`${path}/${id}`, { method: 'DELETE', token: account.token })
      assertFailure(await remove(team.member, team.memberIds.admin), 403, 'FORBIDDEN')
      assertFailure(await remove(team.admin, team.memberIds.owner), 403, 'OWNER_IMMUTABLE')
      const leaving = await signUp(gateway)
      for (const by of [leaving, team.admin, team.owner]) {
        await send(path, { token: team.owner.token, body: { email: leaving.email } })
        const { members } = (await send(`/v1/teams/${team.id}`, { token: team.owner.token })).body
        const { id } = members.find(({ email }: { email: string }) => email === leaving.email)
        const { status, text } = await remove(by, id)
        assert.deepEqual([status, text], [204, ''])
        assertFailure(await send(`/v1/teams/${team.id}`, { token: leaving.token }), 404, 'TEAM_NOT_FOUND')
      }
    },
  },
  {
    says: 'owner and admin can make a key of a team, which is listed as a key of the team and of no member',
    holds: async (world) => {
      const team = await teamOf(world)
      const make = (account: Account) =>
        world.send('/v1/keys', { token: account.token, body: { teamId: team.id, environment: 'test' } })
      assertFailure(await make(team.member), 403, 'FORBIDDEN')
      assertFailure(await make(team.stranger), 404, 'TEAM_NOT_FOUND')
      const { status, body } = await make(team.admin)
      assert.equal(status, 201)
      const { keys } = (await world.send(`/v1/teams/${team.id}`, { token: team.member.token })).body
      assert.deepEqual(
        keys.map(({ id }: { id: string }) => id),
        [body.id],
      )
      await world.send(`/v1/keys/${body.id}`, { method: 'DELETE', token: team.owner.token })
    },
  },
]
