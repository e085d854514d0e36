import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { openTestConsole, type TestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'

describe('an operator session', () => {
  let console_: TestConsole

  before(async () => {
    console_ = await openTestConsole()
  })
  after(async () => await console_.stop())

  const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' }
  const logIn = async (token = console_.token) =>
    await console_.app.inject({ method: 'POST', url: '/login', headers: form, payload: `token=${token}` })
  const cookieOf = (response: Awaited<ReturnType<typeof logIn>>) => String(response.headers['set-cookie']).split(';')[0]
  const statusWith = async (cookie: string | undefined, app = console_.app) =>
    (await app.inject({ url: '/v1/operator/audit', headers: { cookie: cookie ?? '' } })).statusCode

  it('an operator session ends at log-out in every process, for a copy of its cookie too', async () => {
    const cookie = cookieOf(await logIn())
    const other = await console_.another()
    try {
      assert.equal(await statusWith(cookie), 200)
      assert.equal(await statusWith(cookie, other.app), 200)
      const headers = { ...form, cookie: cookie ?? '' }
      assert.equal((await console_.app.inject({ method: 'POST', url: '/logout', headers })).statusCode, 303)
      assert.equal(await statusWith(cookie), 401)
      assert.equal(await statusWith(cookie, other.app), 401)
    } finally {
      await other.close()
    }
  })

  it('an operator session has the name that was given at the log-in, and the audit log says it', async () => {
    const logInAs = async (name: string) => {
      const payload = new URLSearchParams({ token: console_.token, name }).toString()
      const response = await console_.app.inject({ method: 'POST', url: '/login', headers: form, payload })
      return [response.headers['set-cookie']].flat().map((cookie) => String(cookie).split(';')[0])
    }
    const pauseAs = async (cookies: (string | undefined)[]) => {
      const headers = { cookie: cookies.join('; '), 'sec-fetch-site': 'same-origin' }
      const paused = { method: 'POST', url: '/v1/operator/upstreams/trivia/pause', headers } as const
      assert.equal((await console_.app.inject(paused)).statusCode, 200)
      const audit = await console_.app.inject({ url: '/v1/operator/audit?limit=1', headers: console_.bearer })
      return audit.json().records[0].actor
    }
    const cookies = await logInAs(' Casey Jones ')
    assert.equal(await pauseAs(cookies), 'Casey Jones (127.0.0.1)')
    assert.equal(await pauseAs(await logInAs('')), 'operator (127.0.0.1)')
    assert.equal((await logInAs('evil; Path=/\n<b>')).length, 1, 'what is no name is none')
    assert.equal(await pauseAs([cookies[0], 'agw_operator=%3Cb%3E']), 'operator (127.0.0.1)')
    // The user need not type it again at the next log-in.
    const page = await console_.app.inject({ url: '/', headers: { accept: 'text/html', cookie: String(cookies[1]) } })
    assert.match(page.body, /name="name"[^>]* value="Casey Jones"/)
  })

  it('an operator session lasts as long if the clock of the machine of its process is wrong', async (t) => {
    const earlier = cookieOf(await logIn())
    for (const hours of [-13, 13]) {
      const now = Date.now() + hours * 3_600_000
      const wrong = t.mock.method(Date, 'now', () => now)
      const cookie = cookieOf(await logIn())
      assert.equal(await statusWith(cookie), 200)
      assert.equal(await statusWith(earlier), 200)
      wrong.mock.restore()
      assert.equal(await statusWith(cookie), 200)
    }
  })

  it('an operator session is of no use to somebody who reads Redis', async () => {
    const [, id = ''] = cookieOf(await logIn())?.split('=') ?? []
    const keys = await console_.context.redis.keys('*console*')
    assert.ok(keys.length > 0)
    assert.ok(keys.every((key) => !key.includes(id)))
    assert.equal(await statusWith(`agw_console=${keys[0]?.split(':').at(-1)}`), 401)
  })

  it('an operator session goes on while Redis does not answer, and a log-in then is good afterwards', async () => {
    const cookie = cookieOf(await logIn())
    const asker = openRedis(console_.config.redisUrls, 'blocking', console_.context.log)
    await asker.call('CLIENT', 'PAUSE', '2000', 'ALL')
    const during = cookieOf(await logIn())
    const page = await console_.app.inject({ url: '/', headers: { cookie: cookie ?? '' } })
    assert.equal(page.statusCode, 200)
    assert.equal(await statusWith('agw_console=0123456789012345678901234567890123456789abc'), 401)
    await asker.ping()
    await closeRedis(asker)
    await until(() => console_.context.redis.status === 'ready')
    assert.equal(await statusWith(during), 200)
    const other = await console_.another()
    const status = await statusWith(during, other.app)
    await other.close()
    assert.equal(status, 200)
  })

  it('the listener of the console ends requests that do not arrive completely', () => {
    const { headersTimeout, requestTimeout } = console_.app.server
    assert.deepEqual({ headersTimeout, requestTimeout }, { headersTimeout: 10_000, requestTimeout: 15_000 })
  })

  // This test is the last, because it uses up the wrong tokens of this address.
  it('an operator session opens under the right token, however often others at the address guessed', async () => {
    const guess = async () =>
      (await console_.app.inject({ url: '/metrics', headers: { authorization: 'Bearer not-the-token' } })).statusCode
    const statuses: number[] = []
    for (let index = 0; index < 32; index += 1) statuses.push(await guess())
    assert.deepEqual(statuses, [...Array.from({ length: 30 }, () => 401), 429, 429])
    assert.equal((await logIn('wrong')).statusCode, 429)
    assert.equal((await console_.app.inject({ url: '/metrics', headers: console_.bearer })).statusCode, 200)
    assert.equal((await logIn()).statusCode, 303)
  })
})
