import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { type Account, send, sendPatiently, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'

describe('teams', () => {
  let gateway: Gateway
  let owner: Account
  let admin: Account

  before(async () => {
    gateway = await startGateway({ isInProcess: true, environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000}}' } })
    ;[owner, admin] = await Promise.all([signUp(gateway), signUp(gateway)])
  })
  after(() => gateway.stop())

  const as = (account: Account, method: string, path: string, body?: object) =>
    sendPatiently(gateway, path, { method, token: account.token, ...(body ? { body } : {}) })
  const call = async (key: string) => (await send(gateway, '/v1/call/trivia/questions', { key })).status

  async function makeTeam(): Promise<string> {
    const { body } = await as(owner, 'POST', '/v1/teams', { name: 'Team' })
    assert.equal(
      (await as(owner, 'POST', `/v1/teams/${body.team.id}/members`, { email: admin.email, role: 'admin' })).status,
      201,
    )
    return body.team.id
  }
  const makeKey = async (account: Account, teamId: string) =>
    (await as(account, 'POST', '/v1/keys', { teamId, environment: 'test', label: null, expiresAt: null })).body

  /** How many requests wait for a lock of Postgres. */
  const waiting = async (): Promise<number> => {
    const text = `select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    return (await sql<{ count: number }>(gateway, text))[0]?.count ?? 0
  }

  /** Another client of Postgres, in a transaction that is open until it commits. */
  async function openTransaction() {
    const client = new pg.Client({ connectionString: gateway.services.databaseUrl })
    await client.connect()
    await client.query('begin')
    return {
      run: async (text: string, values: unknown[]) => void (await client.query(text, values)),
      commit: async () => void (await client.query('commit')),
      [Symbol.asyncDispose]: () => client.end(),
    }
  }

  it('teams are at most 20 of one owner, also at once; a deleted one makes room, and its keys are refused', async () => {
    const person = await signUp(gateway)
    const answers = await Promise.all(
      Array.from({ length: 25 }, () => as(person, 'POST', '/v1/teams', { name: 'Mine' })),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 20)
    const refused = answers.find(({ status }) => status !== 201)
    assert.deepEqual([refused?.status, refused?.body.code], [409, 'TEAM_LIMIT_REACHED'])
    const first = answers.find(({ status }) => status === 201)?.body.team.id
    const { key } = await makeKey(person, first)
    assert.equal(await call(key), 200)
    assert.equal((await as(person, 'DELETE', `/v1/teams/${first}`)).status, 204)
    assert.equal(await call(key), 401)
    assert.equal((await as(person, 'GET', `/v1/teams/${first}`)).status, 404)
    assert.equal((await as(person, 'POST', '/v1/teams', { name: 'Mine' })).status, 201)
  })

  it('teams are listed in pages, and keys too', async () => {
    const person = await signUp(gateway)
    for (let count = 0; count < 5; count += 1) await as(person, 'POST', '/v1/teams', { name: `T${count}` })
    const names: string[] = []
    let path: string | undefined = '/v1/teams?limit=2'
    let pages = 0
    while (path !== undefined) {
      const answer: Awaited<ReturnType<typeof as>> = await as(person, 'GET', path)
      names.push(...answer.body.teams.map(({ name }: { name: string }) => name))
      path = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1]
      pages += 1
    }
    assert.deepEqual([names, pages], [['T4', 'T3', 'T2', 'T1', 'T0'], 3])
    assert.equal((await as(person, 'GET', '/v1/teams')).headers.get('link'), null)
    // This also works if the page begins at an item that was deleted after its page was read, or at
    // an id that never existed.
    const { body, headers } = await as(person, 'GET', '/v1/teams?limit=2')
    const [, second] = body.teams
    assert.equal((await as(person, 'DELETE', `/v1/teams/${second.id}`)).status, 204)
    const next = /^<([^>]+)>/.exec(headers.get('link') ?? '')?.[1] ?? ''
    for (const address of [next, `/v1/teams?limit=2&cursor=${body.teams[0].id.toUpperCase()}`]) {
      const { teams } = (await as(person, 'GET', address)).body
      assert.deepEqual(
        teams.map(({ name }: { name: string }) => name),
        ['T2', 'T1'],
      )
    }
    for (const cursor of ['1', `_${second.id}`, `99999999999999999_${second.id}`, `1_${second.id}_1`])
      assert.equal((await as(person, 'GET', `/v1/teams?cursor=${cursor}`)).status, 400, cursor)
    const keys = await as(person, 'GET', '/v1/keys?limit=1')
    const [newest] = keys.body.keys
    const keyLink = /^<([^>]+)>/.exec(keys.headers.get('link') ?? '')?.[1] ?? ''
    assert.equal((await as(person, 'DELETE', `/v1/keys/${newest.id}`)).status, 204)
    assert.equal((await as(person, 'GET', keyLink)).body.keys.length, 1)
    assert.equal(keys.body.keys.length, 1)
    assert.match(keys.headers.get('link') ?? '', /cursor=/)
    assert.equal((await as(person, 'GET', '/v1/keys?limit=0')).status, 400)
  })

  it('teams have keys that tell who made them, which end with their maker when the remover says so', async () => {
    const teamId = await makeTeam()
    const [kept, ended] = [await makeKey(owner, teamId), await makeKey(admin, teamId)]
    const { keys, members } = (await as(owner, 'GET', `/v1/teams/${teamId}`)).body
    const makers = keys.map(({ id, createdBy }: { id: string; createdBy: string }) => [id, createdBy])
    assert.deepEqual(makers, [
      [ended.id, admin.id],
      [kept.id, owner.id],
    ])
    assert.ok(members.every(({ emailVerified }: { emailVerified: boolean }) => emailVerified === false))
    assert.equal((await as(owner, 'DELETE', `/v1/teams/${teamId}/members/${admin.id}?revokeKeys=true`)).status, 204)
    assert.deepEqual([await call(kept.key), await call(ended.key)], [200, 401])
  })

  it('teams, keys and members are found by their ids in capitals, in paths, queries and bodies', async () => {
    const teamId = await makeTeam()
    const capitals = teamId.toUpperCase()
    const key = await makeKey(owner, capitals)
    assert.equal((await as(owner, 'GET', `/v1/teams/${capitals}`)).body.keys[0].id, key.id)
    for (const path of ['/v1/logs', '/v1/provider-keys'])
      assert.equal((await as(owner, 'GET', `${path}?teamId=${capitals}`)).status, 200, path)
    const renamed = await as(owner, 'PATCH', `/v1/keys/${key.id.toUpperCase()}`, { label: capitals })
    assert.equal(renamed.body.label, capitals, 'a name that looks like an id is a name')
    const toSelf = { memberId: owner.id.toUpperCase() }
    assert.equal((await as(owner, 'POST', `/v1/teams/${capitals}/transfer`, toSelf)).body.code, 'MEMBER_NOT_FOUND')
    const toAdmin = { memberId: admin.id.toUpperCase() }
    const transfer = await as(owner, 'POST', `/v1/teams/${capitals}/transfer`, toAdmin)
    assert.equal(transfer.body.team?.ownerId, admin.id, transfer.text)
    assert.equal((await as(owner, 'DELETE', `/v1/teams/${capitals}/members/${owner.id.toUpperCase()}`)).status, 204)
    assert.equal((await as(admin, 'DELETE', `/v1/teams/${capitals}`)).status, 204)
  })

  it('a key of a team sees only its own calls, and no calls of the account', async () => {
    const teamId = await makeTeam()
    const { key } = await makeKey(admin, teamId)
    const start = async (sender: string) => {
      const headers = { prefer: 'respond-async' }
      return (await send(gateway, '/v1/call/trivia/questions', { key: sender, headers })).body.id
    }
    const [ofOwner, ofTeam] = [await start(owner.test), await start(key)]
    const read = async (id: string, reader: string) => (await send(gateway, `/v1/calls/${id}`, { key: reader })).status
    assert.equal(await read(ofOwner, key), 404)
    assert.ok([200, 202].includes(await read(ofTeam, key)))
    assert.ok([200, 202].includes(await read(ofTeam.toUpperCase(), key)))
    assert.ok([200, 202].includes(await read(ofOwner, owner.test)))
    assert.ok([200, 202].includes(await read(ofTeam, owner.test)))
    await as(owner, 'DELETE', `/v1/teams/${teamId}`)
  })

  it('teams leave their owner half of the key slots, whatever admins make', async () => {
    const teamId = await makeTeam()
    const byAdmin = await Promise.all(
      Array.from({ length: 30 }, () => as(admin, 'POST', '/v1/keys', { teamId, environment: 'test' })),
    )
    assert.equal(byAdmin.filter(({ status }) => status === 201).length, 25)
    assert.equal((await as(owner, 'POST', '/v1/keys', { environment: 'test' })).status, 201)
    await as(owner, 'DELETE', `/v1/teams/${teamId}`)
  })

  it('teams leave their owner half of the key slots although the admin who made keys has deleted the account', async () => {
    const [helper, teamId] = [await signUp(gateway), await makeTeam()]
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: helper.email, role: 'admin' })
    const made = await Promise.all(Array.from({ length: 25 }, () => makeKey(helper, teamId)))
    await sql(gateway, 'delete from users where id = $1', [helper.id])
    const refused = await as(admin, 'POST', '/v1/keys', { teamId, environment: 'test' })
    assert.deepEqual([refused.status, refused.body.code], [409, 'KEY_LIMIT_REACHED'])
    assert.equal((await as(owner, 'DELETE', `/v1/keys/${made[0]?.id}`)).status, 204)
    assert.equal((await as(admin, 'POST', '/v1/keys', { teamId, environment: 'test' })).status, 201)
    await as(owner, 'DELETE', `/v1/teams/${teamId}`)
  })

  it('of two admins who remove each other at once, only the first succeeds', async () => {
    const [other, teamId] = [await signUp(gateway), await makeTeam()]
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: other.email, role: 'admin' })
    await using transaction = await openTransaction()
    await transaction.run('select 1 from teams where id = $1 for no key update', [teamId])
    const removing = [
      as(admin, 'DELETE', `/v1/teams/${teamId}/members/${other.id}`),
      as(other, 'DELETE', `/v1/teams/${teamId}/members/${admin.id}`),
    ]
    await until(async () => (await waiting()) === removing.length)
    await transaction.commit()
    const statuses = (await Promise.all(removing)).map(({ status }) => status)
    assert.deepEqual(statuses.toSorted(), [204, 404])
    await as(owner, 'DELETE', `/v1/teams/${teamId}`)
  })

  // Nobody has asked the new owner. Until it has given roles, no other member makes a key that
  // counts against its plan.
  it('teams can be handed over: everybody else becomes a plain member, and keys that the new owner has not made end', async () => {
    const [other, teamId] = [await signUp(gateway), await makeTeam()]
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: other.email, role: 'admin' })
    const [ofOwner, ofAdmin] = [await makeKey(owner, teamId), await makeKey(admin, teamId)]
    assert.equal((await as(admin, 'POST', `/v1/teams/${teamId}/transfer`, { memberId: admin.id })).status, 403)
    assert.equal((await as(owner, 'POST', `/v1/teams/${teamId}/transfer`, { memberId: owner.id })).status, 404)
    const leaving = await as(owner, 'DELETE', `/v1/teams/${teamId}/members/${owner.id}`)
    assert.deepEqual([leaving.status, leaving.body.code], [403, 'OWNER_IMMUTABLE'])
    assert.match(leaving.body.hint, /transfer/)
    const { status, body } = await as(owner, 'POST', `/v1/teams/${teamId}/transfer`, { memberId: admin.id })
    assert.deepEqual([status, body.team.ownerId], [200, admin.id])
    assert.deepEqual([await call(ofOwner.key), await call(ofAdmin.key)], [401, 200])
    const { members } = (await as(owner, 'GET', `/v1/teams/${teamId}`)).body
    const roles = members.map(({ id, role }: { id: string; role: string }) => [id, role])
    assert.deepEqual(
      new Map(roles),
      new Map(Object.entries({ [admin.id]: 'owner', [owner.id]: 'member', [other.id]: 'member' })),
    )
    for (const former of [owner, other]) {
      assert.equal((await as(former, 'POST', '/v1/keys', { teamId })).status, 403)
    }
    assert.equal((await as(owner, 'DELETE', `/v1/teams/${teamId}`)).status, 403)
    assert.equal((await as(owner, 'DELETE', `/v1/teams/${teamId}/members/${owner.id}`)).status, 204)
    assert.equal((await as(admin, 'DELETE', `/v1/teams/${teamId}`)).status, 204)
  })

  it('a team can be handed over only to an account that owns fewer than 10 teams, so that strangers cannot use up its number of teams', async () => {
    const [person, teamId] = [await signUp(gateway), await makeTeam()]
    const transfer = () => as(owner, 'POST', `/v1/teams/${teamId}/transfer`, { memberId: person.id })
    const own = Array.from({ length: 10 }, () => as(person, 'POST', '/v1/teams', { name: 'Mine' }))
    const [first] = await Promise.all(own)
    const stranger = await transfer()
    assert.deepEqual(
      [stranger.status, stranger.body.code],
      [404, 'MEMBER_NOT_FOUND'],
      'the answer does not say how many it owns',
    )
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: person.email })
    const refused = await transfer()
    assert.deepEqual([refused.status, refused.body.code], [409, 'TEAM_LIMIT_REACHED'], refused.text)
    assert.match(refused.body.hint, /limit=10/)
    assert.equal((await as(person, 'DELETE', `/v1/teams/${first?.body.team.id}`)).status, 204)
    assert.equal((await transfer()).status, 200)
    assert.equal((await as(person, 'POST', '/v1/teams', { name: 'Mine' })).status, 201)
  })

  it('the former owner cannot change roles or provider keys of a team that has been handed over', async () => {
    const [person, teamId] = [await signUp(gateway), await makeTeam()]
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: person.email })
    await using transaction = await openTransaction()
    // The first step of a transfer.
    await transaction.run('select 1 from teams where id = $1 for no key update', [teamId])
    const keyPath = `/v1/provider-keys/code-host-user?teamId=${teamId}`
    const late = [
      as(owner, 'PUT', `/v1/teams/${teamId}/members/${person.id}`, { role: 'admin' }),
      as(owner, 'PUT', keyPath, { key: 'key-of-the-team' }),
      as(owner, 'DELETE', keyPath),
    ]
    const ended = new Set<object>()
    for (const request of late) void request.finally(() => ended.add(request))
    await until(async () => ended.size + (await waiting()) === late.length)
    await transaction.run(`update team_members set role = 'member' where team_id = $1 and user_id <> $2`, [
      teamId,
      admin.id,
    ])
    await transaction.run(`update team_members set role = 'owner' where team_id = $1 and user_id = $2`, [
      teamId,
      admin.id,
    ])
    await transaction.run('update teams set owner_id = $2 where id = $1', [teamId, admin.id])
    await transaction.commit()
    const statuses = (await Promise.all(late)).map(({ status }) => status)
    assert.deepEqual(statuses, [403, 403, 403])
  })

  it('a team is not handed over to a member whose account is deleted meanwhile, and both requests are answered', async () => {
    const [person, teamId] = [await signUp(gateway), await makeTeam()]
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: person.email })
    await using transaction = await openTransaction()
    // The steps of a deletion.
    await transaction.run('select pg_advisory_xact_lock(hashtextextended($1, 2))', [person.id])
    const body = { memberId: person.id }
    const transfer = send(gateway, `/v1/teams/${teamId}/transfer`, { token: owner.token, body })
    await until(async () => (await waiting()) === 1)
    await transaction.run('delete from users where id = $1', [person.id])
    await transaction.commit()
    const answer = await transfer
    assert.deepEqual([answer.status, answer.body.code], [404, 'MEMBER_NOT_FOUND'])
    await as(owner, 'DELETE', `/v1/teams/${teamId}`)
  })

  it('teams are not handed over to a member whose live keys would become more than 50', async () => {
    const person = await signUp(gateway)
    const teamId = await makeTeam()
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: person.email, role: 'admin' })
    const { key } = await makeKey(person, teamId)
    const own: Awaited<ReturnType<typeof as>>[] = []
    // A few at once, because they wait for each other in Postgres.
    while (own.length < 48) {
      own.push(...(await Promise.all(Array.from({ length: 6 }, () => as(person, 'POST', '/v1/keys', {})))))
    }
    assert.ok(own.every(({ status }) => status === 201))
    const transfer = () => as(owner, 'POST', `/v1/teams/${teamId}/transfer`, { memberId: person.id })
    // With the two of the sign-up the member has 50 of its own.
    const refused = await transfer()
    assert.deepEqual([refused.status, refused.body.code], [409, 'KEY_LIMIT_REACHED'], refused.text)
    assert.match(refused.body.message, /member/)
    assert.equal((await as(owner, 'GET', `/v1/teams/${teamId}`)).body.yourRole, 'owner')
    assert.equal(await call(key), 200)
    assert.equal((await as(person, 'DELETE', `/v1/keys/${own[0]?.body.id}`)).status, 204)
    assert.equal((await transfer()).status, 200)
    assert.equal(await call(key), 200)
  })

  /**
   * Makes a key by an admin, and a change of the team while the key is about to be inserted.
   *
   * @returns the answers
   */
  async function makeKeyDuring(teamId: string, change: () => Promise<{ status: number }>) {
    await using transaction = await openTransaction()
    // Creations of one account wait for each other here.
    await transaction.run('select pg_advisory_xact_lock(hashtextextended($1, 1))', [owner.id])
    const making = as(admin, 'POST', '/v1/keys', { teamId, environment: 'test' })
    await until(async () => (await waiting()) === 1)
    let isChanged = false
    const changing = change().finally(() => {
      isChanged = true
    })
    await until(async () => isChanged || (await waiting()) === 2)
    await transaction.commit()
    return await Promise.all([making, changing])
  }

  it('a team that is handed over while a key is created has no key that counts against the former owner', async () => {
    const person = await signUp(gateway)
    const teamId = await makeTeam()
    await as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: person.email })
    const [made, handedOver] = await makeKeyDuring(teamId, () =>
      as(owner, 'POST', `/v1/teams/${teamId}/transfer`, { memberId: person.id }),
    )
    assert.equal(handedOver.status, 200)
    const keys = await sql(gateway, 'select user_id from api_keys where team_id = $1 and revoked_at is null', [teamId])
    assert.deepEqual(keys, [])
    assert.equal(await call(made.body.key), 401)
  })

  it('teams have no key of a member who was removed with all keys while it was made', async () => {
    const teamId = await makeTeam()
    const [made, removed] = await makeKeyDuring(teamId, () =>
      as(owner, 'DELETE', `/v1/teams/${teamId}/members/${admin.id}?revokeKeys=true`),
    )
    assert.equal(removed.status, 204)
    assert.equal(await call(made.body.key), 401)
  })

  it('a team that is deleted while a key is created leaves no key, and the answer is not a 500', async () => {
    const teamId = await makeTeam()
    const [made, deleted] = await makeKeyDuring(teamId, () => as(owner, 'DELETE', `/v1/teams/${teamId}`))
    assert.equal(deleted.status, 204)
    assert.ok([201, 404].includes(made.status), String(made.status))
    assert.equal(await call(made.body.key ?? owner.test), made.body.key ? 401 : 200)
  })

  it('adding a member to a team, or renaming it, while it is deleted is answered 404', async () => {
    const [person, teamId] = [await signUp(gateway), await makeTeam()]
    await using transaction = await openTransaction()
    await transaction.run('delete from teams where id = $1', [teamId])
    const late = [
      as(owner, 'POST', `/v1/teams/${teamId}/members`, { email: person.email }),
      as(owner, 'PUT', `/v1/teams/${teamId}`, { name: 'Late' }),
    ]
    await until(async () => (await waiting()) === late.length)
    await transaction.commit()
    for (const { status, body } of await Promise.all(late))
      assert.deepEqual([status, body.code], [404, 'TEAM_NOT_FOUND'])
  })

  it('keys whose revocation was committed but not announced end at once, and the revocation can be repeated', async (t) => {
    const proxy = await startPostgresProxy(gateway.services.databaseUrl)
    t.after(() => proxy.close())
    const url = await gateway.startWeb({ DATABASE_URL: proxy.url })
    const person = await signUp(gateway)
    const [own, { key, id }] = [person.test, (await as(person, 'POST', '/v1/keys', { environment: 'test' })).body]
    assert.deepEqual([await call(own), await call(key)], [200, 200])
    proxy.breaksAfter = 'update "api_keys" set "revoked_at"'
    const unheard = await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token: person.token, url })
    assert.deepEqual([unheard.status, unheard.body.code], [503, 'DEPENDENCY_UNAVAILABLE'])
    assert.deepEqual([await call(own), await call(key)], [200, 401])
    // The commit may come after everything else.
    const [row] = await sql<{ id: string }>(
      gateway,
      `update api_keys set revoked_at = now() where user_id = $1 and revoked_at is null and environment = 'test' returning id`,
      [person.id],
    )
    assert.equal(await call(own), 200)
    assert.equal((await as(admin, 'DELETE', `/v1/keys/${row?.id}`)).status, 404)
    assert.equal(await call(own), 200, 'nobody else makes nodes look at an account again')
    assert.equal((await as(person, 'DELETE', `/v1/keys/${row?.id}`)).status, 404)
    assert.equal(await call(own), 401)
  })

  it('teams take no more than 100 additions a minute, known addresses included', async () => {
    const person = await signUp(gateway)
    const { body } = await as(person, 'POST', '/v1/teams', { name: 'Busy' })
    const add = () => as(person, 'POST', `/v1/teams/${body.team.id}/members`, { email: admin.email })
    const codes: number[] = []
    while (codes.length < 105) {
      codes.push(...(await Promise.all(Array.from({ length: 15 }, async () => (await add()).status))))
    }
    assert.equal(codes.filter((code) => code === 429).length, 5)
    assert.doesNotMatch((await add()).body.hint, /plan/)
  })

  it('the 21st log-in of an account ends its oldest session', async () => {
    const person = await signUp(gateway)
    const logIn = async () =>
      (await send(gateway, '/v1/auth/login', { body: { email: person.email, password: person.password } })).body.token
    const tokens = [person.token]
    while (tokens.length < 21) tokens.push(await logIn())
    const answers = await Promise.all(tokens.map((token) => send(gateway, '/v1/me', { token })))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, ...Array(20).fill(200)],
    )
    // The clock of Postgres was an hour ahead until now.
    await sql(gateway, "update sessions set created_at = created_at + interval '1 hour' where user_id = $1", [
      person.id,
    ])
    assert.equal((await send(gateway, '/v1/me', { token: await logIn() })).status, 200)
  })
})
