import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { signSessionToken } from '../../src/accounts/session-token.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import { compileSchemas } from '../../src/http/request/lazy-schemas.ts'
import { listRoutes } from '../../src/http/server/method-not-allowed.ts'
import {
  BY_KEY_OR_SESSION,
  PRINCIPALS,
  type PrincipalName,
  PUBLIC,
  REFUSED,
  type Row,
  TABLE,
} from '../support/authorisation-table.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'

/** One team as a case finds it, and everything a row can name. */
type Fixture = Record<string, string>

describe('authorisation', () => {
  let gateway: Gateway
  let database: pg.Client
  let people: Record<PrincipalName | 'newcomer' | 'otherMember' | 'otherAdmin' | 'elsewhere' | 'disabled', Account>
  let jwt: Config['secrets']['jwt']
  let node = 0

  before(async () => {
    const provider = {
      OIDC_ISSUER: 'http://127.0.0.1:9',
      OIDC_CLIENT_ID: 'x',
      OIDC_CLIENT_SECRET: 'y',
      OIDC_ACCOUNTS: 'on',
    }
    gateway = await startGateway({ isInProcess: true, webNodes: 2, workers: 0, environment: provider })
    jwt = loadConfig(gateway.environment).secrets.jwt
    database = new pg.Client({ connectionString: gateway.services.databaseUrl })
    await database.connect()
    const names = [...PRINCIPALS, 'newcomer', 'otherMember', 'otherAdmin', 'elsewhere', 'disabled'] as const
    people = Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await signUp(gateway)])),
    ) as typeof people
    await database.query('update users set disabled_at = now() where id = $1', [people.disabled.id])
  })
  after(async () => {
    await database.end()
    await gateway.stop()
  })

  /** Replaces all teams and keys, which earlier cases may have changed, in one statement. */
  async function createFixture(self: Account): Promise<Fixture> {
    const [team, otherTeam] = [randomUUID(), randomUUID()]
    const members: [team: string, user: Account, role: string][] = [
      [team, people.owner, 'owner'],
      [team, people.admin, 'admin'],
      [team, people.member, 'member'],
      [team, people.otherMember, 'member'],
      [team, people.otherAdmin, 'admin'],
      [otherTeam, people.elsewhere, 'owner'],
      [otherTeam, people.newcomer, 'member'],
    ]
    const keys: Record<string, { user: Account; team?: string; isRevoked?: boolean }> = {
      ownKey: { user: self },
      ownRevokedKey: { user: self, isRevoked: true },
      otherUserKey: { user: people.newcomer },
      teamKey: { user: people.owner, team },
      otherTeamKey: { user: people.elsewhere, team: otherTeam },
    }
    const ids = Object.fromEntries(Object.keys(keys).map((name) => [name, randomUUID()]))
    const made = Object.entries(keys)
    await database.query('delete from api_keys')
    await database.query('delete from teams')
    await database.query(
      `with made_teams as (
         insert into teams (id, name, owner_id) select id, 'Team', owner from unnest($1::uuid[], $2::uuid[]) t(id, owner)
       ), made_members as (
         insert into team_members (team_id, user_id, role) select * from unnest($3::uuid[], $4::uuid[], $5::text[])
       )
       insert into api_keys (id, user_id, team_id, environment, key_hash, last_four, revoked_at)
         select id, user_id, team_id, 'live', sha256(id::text::bytea), '0000', case when is_revoked then now() end
           from unnest($6::uuid[], $7::uuid[], $8::uuid[], $9::boolean[]) k(id, user_id, team_id, is_revoked)`,
      [
        [team, otherTeam],
        [people.owner.id, people.elsewhere.id],
        members.map(([of]) => of),
        members.map(([, user]) => user.id),
        members.map(([, , role]) => role),
        made.map(([name]) => ids[name]),
        made.map(([, { user }]) => user.id),
        made.map(([, key]) => key.team ?? null),
        made.map(([, { isRevoked = false }]) => isRevoked),
      ],
    )
    return {
      ...ids,
      ...{ team, otherTeam, random: randomUUID(), malformed: 'not-an-id', self: self.id },
      otherMember: people.otherMember.id,
      otherAdmin: people.otherAdmin.id,
      owner: people.owner.id,
      memberElsewhere: people.newcomer.id,
    }
  }

  /** All rows that a refused request must leave unchanged. */
  async function snapshot(): Promise<string> {
    const { rows } = await database.query(`select
      (select json_agg(t order by id) from teams t) as teams,
      (select json_agg(m order by team_id, user_id) from team_members m) as members,
      (select json_agg(k order by id) from api_keys k) as keys`)
    return JSON.stringify(rows)
  }

  /** Sends a row's request to one node and then the other in turn: rights are the same on both. */
  async function request(row: Row, fixture: Fixture, credential: { token?: string; key?: string }): Promise<number> {
    const [method = '', template = ''] = row.route.split(' ')
    const path = template.replace(
      /:(\w+)/g,
      (_, name: string) => fixture[row.path?.[name] ?? ''] ?? row.path?.[name] ?? '',
    )
    node += 1
    const { status } = await send(gateway, path, {
      method,
      ...credential,
      ...(row.body === undefined ? {} : { body: fillBody(row.body, fixture) }),
      url: gateway.urls[node % 2] ?? '',
    })
    return status
  }

  function fillBody(body: unknown, fixture: Fixture): unknown {
    const emails: Fixture = { newcomer: people.newcomer.email, otherMember: people.otherMember.email }
    return JSON.parse(
      JSON.stringify(body).replace(/"\$(\w+)"/g, (_, name: string) => JSON.stringify(emails[name] ?? fixture[name])),
    )
  }

  for (const name of PRINCIPALS) {
    it(`authorisation of ${name === 'former' ? 'a former member' : name} is as the table says, and a refusal changes nothing`, async () => {
      const self = people[name]
      // What a row that succeeds may change or end. If a row is refused, the next row finds the
      // same state.
      const prepare = async () => ({
        token: await openSession(self),
        fixture: await createFixture(self),
        before: await snapshot(),
      })
      let prepared = await prepare()
      for (const row of TABLE) {
        const { token, fixture, before } = prepared
        const status = await request(row, fixture, { token })
        assert.equal(String(status), row.expected.split(' ')[PRINCIPALS.indexOf(name)], describeCase(row, name))
        if (status >= 400) {
          assert.equal(await snapshot(), before, describeCase(row, name))
          continue
        }
        prepared = await prepare()
      }
    })
  }

  /** A session as a log-in makes it, without the cost of a password hash. */
  async function openSession(account: Account): Promise<string> {
    const id = randomUUID()
    const expiresAt = new Date(Date.now() + 60_000)
    const values = [id, account.id, expiresAt]
    await database.query('insert into sessions (id, user_id, expires_at) values ($1, $2, $3)', values)
    return await signSessionToken(jwt, { userId: account.id, sessionId: id }, expiresAt)
  }

  it('every row of the authorisation table is refused with 401 without a valid session', async () => {
    const owner = people.owner
    const ended = await openSession(owner)
    await send(gateway, '/v1/auth/logout', { method: 'POST', token: ended })
    const sessionId = randomUUID()
    const claims = { userId: owner.id, sessionId }
    const credentials: Record<string, { token?: string; key?: string }> = {
      'no credential': {},
      'an expired token': { token: await signSessionToken(jwt, claims, new Date(Date.now() - 60_000)) },
      'a token of no session': { token: await signSessionToken(jwt, claims, new Date(Date.now() + 60_000)) },
      'a session that was logged out': { token: ended },
      'an API key': { key: owner.live },
      'an API key as bearer': { token: owner.live },
      'a disabled account': { token: people.disabled.token },
    }
    const fixture = await createFixture(owner)
    const before = await snapshot()
    // A credential is refused before the path and the body are looked at, so one row of each route
    // is enough for all credentials but the first.
    const firstOfRoute = new Map(TABLE.toReversed().map((row) => [row.route, row]))
    for (const row of TABLE) {
      for (const [name, credential] of Object.entries(credentials)) {
        if (name !== 'no credential' && firstOfRoute.get(row.route) !== row) continue
        assert.equal(await request(row, fixture, credential), 401, describeCase(row, name))
      }
    }
    assert.equal(await snapshot(), before)
  })

  it('authorisation has a row in the table for every route that is not public, and the schemas of all routes can be compiled', async () => {
    const app = gateway.apps.get(gateway.url) ?? assert.fail()
    await compileSchemas(app)
    const routes = listRoutes(app).map(({ method, url }) => `${method === 'HEAD' ? 'GET' : method} ${url}`)
    const covered = new Set([...TABLE.map(({ route }) => route), ...PUBLIC, ...BY_KEY_OR_SESSION, ...REFUSED])
    assert.deepEqual(
      routes.filter((route) => !covered.has(route)),
      [],
      'routes without a row in authorisation-table.ts',
    )
    assert.deepEqual(
      [...covered].filter((route) => !routes.includes(route)),
      [],
      'rows for routes that there are not',
    )
    // fetch() itself sends no TRACE.
    for (const route of [...BY_KEY_OR_SESSION, ...REFUSED].filter((name) => !name.startsWith('TRACE'))) {
      const status = await request({ route: route.replace('*', 'weather/current'), expected: '' }, {}, {})
      assert.equal(status, 401, route)
    }
  })

  it('authorisation follows a demotion and a removal on the next request on the other node', async () => {
    const fixture = await createFixture(people.admin)
    const [first = '', second = ''] = gateway.urls
    const rename = (url: string) =>
      send(gateway, `/v1/teams/${fixture.team}`, { method: 'PUT', token: people.admin.token, body: { name: 'X' }, url })
    const path = `/v1/teams/${fixture.team}/members/${people.admin.id}`
    assert.equal((await rename(second)).status, 200)
    const demoted = await send(gateway, path, {
      method: 'PUT',
      token: people.owner.token,
      body: { role: 'member' },
      url: first,
    })
    assert.equal(demoted.body.member.role, 'member')
    assert.equal((await rename(second)).status, 403)
    assert.equal((await send(gateway, path, { method: 'DELETE', token: people.owner.token, url: first })).status, 204)
    assert.equal((await rename(second)).status, 404)
  })

  it('authorisation keeps one owner and one row per member under concurrent changes', async () => {
    const fixture = await createFixture(people.owner)
    const members = `/v1/teams/${fixture.team}/members`
    const token = people.owner.token
    for (let round = 0; round < 10; round += 1) {
      const adds = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          send(gateway, members, { token, body: { email: people.newcomer.email }, url: gateway.urls[index % 2] ?? '' }),
        ),
      )
      // On a busy machine a node may refuse a change, because Postgres takes longer than it waits.
      const added = adds.map(({ status }) => status).filter((status) => status !== 503)
      assert.ok(added.filter((status) => status === 201).length <= 1, `${added}`)
      if (added.length === 8) assert.deepEqual(added.sort(), [201, ...Array(7).fill(409)])
      const changes = await Promise.all([
        send(gateway, `${members}/${people.newcomer.id}`, { method: 'DELETE', token }),
        send(gateway, `${members}/${people.newcomer.id}`, { method: 'PUT', token, body: { role: 'admin' } }),
        send(gateway, `${members}/${people.newcomer.id}`, { method: 'DELETE', token, url: gateway.urls[1] ?? '' }),
      ])
      assert.ok(changes.every(({ status }) => [200, 204, 404, 503].includes(status)))
      const remove = () => send(gateway, `${members}/${people.newcomer.id}`, { method: 'DELETE', token })
      if (changes.some(({ status }) => status === 503)) await until(async () => (await remove()).status !== 503)
      const { rows } = await database.query(
        `select count(*) filter (where role = 'owner')::int as owners, count(*) filter (where user_id = $2)::int as newcomers
         from team_members where team_id = $1`,
        [fixture.team, people.newcomer.id],
      )
      assert.deepEqual(rows, [{ owners: 1, newcomers: 0 }])
    }
  })
})

function describeCase(row: Row, principal: string): string {
  return `${principal}: ${row.route} ${JSON.stringify(row.path ?? {})} ${JSON.stringify(row.body ?? null)}`
}
