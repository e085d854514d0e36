import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { accountKeys, keys } from '../../src/redis/keys.ts'
import { type Account, send, signUp, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { type App, postForm, registerApp, signIn, type Tokens } from '../support/oauth-client.ts'
import { GENERATIONS, SdkProcess } from '../support/oauth-sdk.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { type Stage, startStage } from '../support/stage.ts'

describe('a refresh', () => {
  let stage: Stage
  let gateway: Gateway
  let account: Account
  /** The public address, which the first node listens on, and the address of another node. */
  let url: string
  let other: string
  let app: App

  before(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    stage = await startStage({
      isInProcess: true,
      caps: { 'dog-images': 'concurrency=20,1000/1' },
      environment: { PORT: String(port), BASE_URL: url },
    })
    ;({ gateway, account } = stage)
    other = await gateway.startWeb({ PORT: '0' })
    stage.upstream.play('dog-images', () => ({ status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' }))
    app = await registerApp(url)
  })
  after(() => stage.stop())

  const post = (token: string, node = url) =>
    postForm(`${node}/oauth/token`, { grant_type: 'refresh_token', client_id: app.clientId, refresh_token: token })
  /**
   * A node on a busy machine may answer 503, if Postgres takes longer than a second. Applications
   * send the request again then.
   */
  const refresh = async (token: string, node = url) => {
    let response = await post(token, node)
    for (let tries = 1; response.status === 503 && tries < 10; tries += 1) response = await post(token, node)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    return JSON.parse(text) as Tokens
  }
  const refused = async (token: string, node = url) => {
    const response = await post(token, node)
    return [response.status, JSON.parse(await response.text()).error]
  }
  const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  /** Status of a request of each node with an access token for `/mcp`. */
  const statuses = ({ access_token: token }: Tokens) =>
    Promise.all(
      [url, other].map(async (node) => (await send(gateway, '/mcp', { url: node, token, body: listTools })).status),
    )
  const signedIn = async (by = account) => await (await signIn(url, by.token, { app })).tokens()
  const byNode = (node: string) => (input: string | URL, init?: RequestInit) => {
    const { pathname, search } = new URL(input)
    return fetch(node + pathname + search, init)
  }

  /**
   * Moves the clock: everything that OAuth has stored, and what the nodes remember of the account,
   * gets older.
   */
  async function pass(seconds: number): Promise<void> {
    const past = `interval '${seconds} seconds'`
    await sql(
      gateway,
      `update oauth_artifacts set expires_at = expires_at - ${past}, consumed_at = consumed_at - ${past},
        superseded_at = superseded_at - ${past}`,
    )
    const [connection] = await sql<{ id: string }>(
      gateway,
      `update connections set created_at = created_at - ${past} where user_id = $1 returning id`,
      [account.id],
    )
    await stage.redis.del(accountKeys.version(account.id))
    if (connection && seconds > 60) await stage.redis.del(keys.throttle('refresh', connection.id))
  }

  for (const generation of GENERATIONS) {
    it(`a refresh by the ${generation} official client may use a token again after 0, 31 and 465 seconds and after nine hours, from two nodes`, async () => {
      const first = new SdkProcess(generation, { serverUrl: `${url}/mcp`, userToken: account.token })
      await first.authorize()
      assert.equal(first.tokens.expires_in, 28_800)
      const sleeping = first.fork()
      let elapsed = 0
      for (const second of [0, 0, 31, 465, 9 * 3_600]) {
        await pass(second - elapsed)
        elapsed = second
        const woken = sleeping.fork()
        assert.ok(await woken.refresh(byNode(second === 31 ? other : url)), `${second}`)
        assert.deepEqual(await statuses(woken.tokens), [200, 200], `${second}`)
      }
      // The node refuses the tokens from before the nine hours, and the client refreshes by itself.
      assert.deepEqual(await statuses(first.tokens), [401, 401])
      assert.ok((await first.listTools()).includes('search_apis'))
      assert.deepEqual([first.signIns, sleeping.signIns], [1, 0])
    })

    it(`a refresh by the ${generation} official client goes on although each second answer is lost`, async () => {
      const application = new SdkProcess(generation, { serverUrl: `${url}/mcp`, userToken: account.token })
      await application.authorize()
      let answers = 0
      const losing = async (input: string | URL, init?: RequestInit): Promise<Response> => {
        const response = await fetch(input, init)
        answers += 1
        if (answers % 2 === 0) return response
        await response.text()
        throw new TypeError('fetch failed')
      }
      const outcomes: boolean[] = []
      for (let time = 0; time < 8; time += 1) {
        // If a client got no answer, it begins a sign-in that nobody finishes. Its next request
        // finds the stored tokens.
        outcomes.push(await application.refresh(losing))
        assert.deepEqual(await statuses(application.tokens), [200, 200])
      }
      assert.deepEqual(
        outcomes,
        Array.from({ length: 8 }, (_, index) => index % 2 === 1),
      )
    })
  }

  it('a refresh of two processes that share a stored token gives each tokens of its own, for as long as both go on', async () => {
    const first = new SdkProcess('newest', { serverUrl: `${url}/mcp`, userToken: account.token })
    await first.authorize()
    const second = first.fork()
    await first.refresh()
    await pass(465)
    for (let round = 0; round < 4; round += 1) {
      for (const process of [second, first]) {
        assert.ok(await process.refresh(byNode(round % 2 ? other : url)))
        assert.deepEqual(await statuses(process.tokens), [200, 200])
      }
    }
    assert.deepEqual([first.signIns, second.signIns], [1, 0])
  })

  it('a refresh with one token on two nodes at once gives tokens to each request, round after round', async () => {
    let { refresh_token: newest } = await signedIn()
    for (let round = 0; round < 4; round += 1) {
      const pairs = await Promise.all([
        refresh(newest),
        refresh(newest, other),
        refresh(newest),
        refresh(newest, other),
      ])
      assert.equal(new Set(pairs.map(({ refresh_token }) => refresh_token)).size, 4)
      for (const pair of pairs) assert.deepEqual(await statuses(pair), [200, 200])
      newest = pairs[round]?.refresh_token ?? assert.fail()
    }
  })

  it('a refresh with a token whose successor of a successor was used ends the connection on every node', async () => {
    const first = await signedIn()
    const second = await refresh(first.refresh_token)
    const third = await refresh(second.refresh_token, other)
    // The successor of the first token was used, the successor of that successor was not.
    const again = await refresh(first.refresh_token)
    assert.deepEqual(await statuses(again), [200, 200])
    const fourth = await refresh(third.refresh_token)
    assert.deepEqual(await statuses(fourth), [200, 200])
    assert.deepEqual(await refused(first.refresh_token, other), [400, 'invalid_grant'])
    for (const pair of [first, second, third, fourth, again]) {
      assert.deepEqual(await statuses(pair), [401, 401])
      assert.deepEqual(await refused(pair.refresh_token), [400, 'invalid_grant'])
    }
  })

  it('a refresh by the official client with a replayed token makes it sign in again', async () => {
    const application = new SdkProcess('newest', { serverUrl: `${url}/mcp`, userToken: account.token })
    await application.authorize()
    const thief = application.fork()
    for (let time = 0; time < 3; time += 1) await application.refresh()
    await thief.authorize()
    assert.equal(thief.signIns, 1)
    assert.deepEqual(await statuses(application.tokens), [401, 401])
    assert.deepEqual(await statuses(thief.tokens), [200, 200])
  })

  it('a refresh whose tokens Postgres stored while its answer was lost gets 503 first, and tokens when it comes again', async (t) => {
    const proxy = await startPostgresProxy(gateway.services.databaseUrl)
    t.after(() => proxy.close())
    const node = await gateway.startWeb({ PORT: '0', DATABASE_URL: proxy.url })
    const tokens = await signedIn()
    proxy.breaksAfter = 'superseded_at ='
    assert.deepEqual(await refused(tokens.refresh_token, node), [503, 'temporarily_unavailable'])
    assert.equal(proxy.breaksAfter, undefined)
    assert.deepEqual(await statuses(await refresh(tokens.refresh_token, node)), [200, 200])
  })

  it('a refresh whose node is killed between storing the tokens and answering gets tokens from another node', async (t) => {
    const proxy = await startPostgresProxy(gateway.services.databaseUrl)
    t.after(() => proxy.close())
    const { child, message } = await gateway.startProcess('src/server.ts', { PORT: '0', DATABASE_URL: proxy.url })
    t.after(() => child.kill('SIGKILL'))
    const node = `http://127.0.0.1:${(message as { listening: number }).listening}`
    const stored = async () => {
      const [row] = await sql<{ count: number }>(
        gateway,
        "select count(*)::int as count from oauth_artifacts where kind = 'AccessToken'",
      )
      return row?.count ?? 0
    }
    let newest = await signedIn()
    for (let time = 0; time < 2; time += 1) newest = await refresh(newest.refresh_token, node)
    const before = await stored()
    proxy.holdsAfter = 'superseded_at ='
    const lost = post(newest.refresh_token, node)
    await until(async () => (await stored()) > before)
    const failed = assert.rejects(lost)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await failed
    assert.deepEqual(await statuses(await refresh(newest.refresh_token)), [200, 200])
  })

  it('a refresh is refused for some seconds if the connection was refreshed twenty times in a minute, and the connection stays valid', async () => {
    const by = await signUp(gateway)
    const tokens = await signedIn(by)
    const nodes = Array.from({ length: 25 }, (_, index) => (index % 2 ? other : url))
    const answers: Response[] = []
    // Each refresh locks the connection: a few at once, so that none waits for the others too long.
    for (let from = 0; from < nodes.length; from += 5) {
      const group = nodes.slice(from, from + 5)
      answers.push(...(await Promise.all(group.map((node) => post(tokens.refresh_token, node)))))
    }
    const counts = Map.groupBy(answers, ({ status }) => status)
    assert.deepEqual([counts.get(200)?.length, counts.get(429)?.length], [20, 5])
    for (const answer of counts.get(429) ?? []) {
      const retryAfter = Number(answer.headers.get('retry-after'))
      assert.ok(retryAfter > 0 && retryAfter <= 60, `${retryAfter}`)
      assert.equal(JSON.parse(await answer.text()).error, 'temporarily_unavailable')
    }
    assert.deepEqual(await statuses(tokens), [200, 200])
    const [connection] = (await send(gateway, '/v1/connections', { token: by.token })).body.connections
    await stage.redis.del(keys.throttle('refresh', connection.id))
    await refresh(tokens.refresh_token)
  })

  it('a refresh does not bring back a connection that its user ended: its tokens are refused at every address, on every node', async () => {
    const by = await signUp(gateway)
    for (const resource of [url, `${url}/mcp`, `${url}/mcp/dog-images`]) {
      const first = await (await signIn(url, by.token, { app, resource })).tokens()
      const second = await refresh(first.refresh_token)
      const requests: [string, object?][] =
        resource === url
          ? [
              ['/v1/call/dog-images/random'],
              ['/v1/calls/call_unknown'],
              ['/v1/batch', { calls: [{ api: 'dog-images', endpoint: '/random' }] }],
            ]
          : [[resource.slice(url.length), listTools]]
      const take = async (status: (given: number) => boolean) => {
        for (const [path, body] of requests) {
          for (const node of [url, other]) {
            for (const { access_token: token } of [first, second]) {
              const answer = await send(gateway, path, {
                url: node,
                token,
                headers: { accept: 'application/json' },
                ...(body && { body }),
              })
              assert.ok(status(answer.status), `${path} ${answer.status} ${answer.text}`)
            }
          }
        }
      }
      await take((status) => status !== 401)
      const [{ id }] = (await send(gateway, '/v1/connections', { token: by.token })).body.connections
      await send(gateway, `/v1/connections/${id}`, { method: 'DELETE', token: by.token, url: other })
      await take((status) => status === 401)
      assert.deepEqual(await refused(second.refresh_token), [400, 'invalid_grant'])
    }
  })
})
