import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type Account, send, signUpThroughApi, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'

describe('a lost password', () => {
  let mail: MailServer
  let gateway: Gateway

  before(async () => {
    mail = await startMailServer()
    gateway = await startGateway({ isInProcess: true, webNodes: 2, workers: 0, environment: { SMTP_URL: mail.url } })
  })
  after(async () => {
    await gateway.stop()
    await mail.close()
  })

  const linksTo = (email: string): URL[] =>
    mail.mails
      .filter(({ to }) => to === email)
      .flatMap(({ text }) => text.match(/http:\/\/localhost:3000\/reset\?token=[\w-]+/g) ?? [])
      .map((link) => new URL(link))
  const askFor = (email: string, url?: string) =>
    send(gateway, '/v1/auth/reset', { body: { email }, ...(url === undefined ? {} : { url }) })
  const linkFor = async ({ email }: Account): Promise<URL> => {
    const count = linksTo(email).length
    assert.equal((await askFor(email)).status, 204)
    await until(() => linksTo(email).length > count)
    return linksTo(email).at(-1) ?? assert.fail()
  }
  const setPassword = (link: URL, newPassword: string, url = gateway.url) =>
    fetch(`${url}/reset`, {
      method: 'POST',
      headers: { accept: 'text/html' },
      body: new URLSearchParams({ token: link.searchParams.get('token') ?? '', newPassword }),
    })
  const logIn = async (email: string, password: string) =>
    (await send(gateway, '/v1/auth/login', { body: { email, password } })).status
  const meOn = async (url: string | undefined, token: string) =>
    (await send(gateway, '/v1/me', { token, url: url ?? '' })).status

  it('a mailed link sets a new password once, ends the sessions on every node, and leaves keys as they are', async () => {
    const account = await signUpThroughApi(gateway)
    const link = await linkFor(account)
    // If a program opens the links of a mail, it uses nothing up.
    const page = await fetch(`${gateway.url}/reset${link.search}`)
    assert.match(await page.text(), /<form [^>]*method="post" action="\/reset">/)
    assert.equal(page.headers.get('cache-control'), 'no-store')
    assert.equal(await meOn(gateway.urls[1], account.token), 200)

    const set = await setPassword(link, 'another password')
    assert.equal(set.status, 200)
    assert.match(await set.text(), /Your password is set/)
    assert.deepEqual(await Promise.all(gateway.urls.map((url) => meOn(url, account.token))), [401, 401])
    assert.equal(await logIn(account.email, account.password), 401)
    assert.equal(await logIn(account.email, 'another password'), 200)
    const call = await send(gateway, '/v1/call/weather/current?latitude=x', { key: account.live })
    assert.equal(call.status, 400, 'the key still is one')
    assert.equal((await setPassword(link, 'a third password')).status, 401)
    const [row] = await sql<{ proven: boolean }>(
      gateway,
      'select email_verified_at is not null as proven from users where id = $1',
      [account.id],
    )
    assert.equal(row?.proven, true, 'whoever used the link receives the mail of the address')
  })

  it('of two uses of a link at once one sets the password, and other links of the account end with it', async () => {
    const account = await signUpThroughApi(gateway)
    const [first, second] = [await linkFor(account), await linkFor(account)]
    const answers = await Promise.all(
      gateway.urls.map((url, index) => setPassword(second, `new password ${index}`, url)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401])
    assert.equal((await setPassword(first, 'an older link')).status, 401)
  })

  it('a link that was mailed before its account changed the password sets nothing', async () => {
    const account = await signUpThroughApi(gateway)
    const link = await linkFor(account)
    const change = { currentPassword: account.password, newPassword: 'changed by its owner' }
    const changed = await send(gateway, '/v1/auth/password', { token: account.token, body: change })
    assert.equal(changed.status, 204)
    assert.equal((await setPassword(link, 'an older link')).status, 401)
    assert.equal(await logIn(account.email, 'changed by its owner'), 200)
  })

  it('a link that has expired or was invented sets nothing, and a password that is too short does not use the link up', async () => {
    const account = await signUpThroughApi(gateway)
    const link = await linkFor(account)
    assert.equal((await setPassword(new URL(`${link.href}x`), 'another password')).status, 401)
    const short = await setPassword(link, 'short')
    assert.equal(short.status, 400)
    assert.match(await short.text(), /8 to 256 characters/)
    assert.equal((await setPassword(link, 'long enough now')).status, 200)
    const late = await linkFor(account)
    await sql(gateway, "update account_links set expires_at = now() - interval '1 second' where user_id = $1", [
      account.id,
    ])
    assert.equal((await setPassword(late, 'too late for this')).status, 401)
  })

  it('a link that was used, is cut off or has expired shows a page from which the user can get another link', async () => {
    const page = async (path: string, form?: Record<string, string>) => {
      const sent = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
      const answer = await fetch(gateway.url + path, { headers: { accept: 'text/html' }, ...sent })
      return { status: answer.status, text: await answer.text() }
    }
    const other = { '/reset': '/forgot', '/verify': '/account/settings' }
    for (const [path, way] of Object.entries(other)) {
      const cutOff = await page(path)
      const used = await page(path, { token: 'a'.repeat(43), newPassword: 'long enough' })
      assert.deepEqual([cutOff.status, used.status], [400, 401], path)
      assert.match(cutOff.text, /The address is cut off/)
      assert.match(used.text, /The link is not valid/)
      for (const { text } of [cutOff, used]) {
        assert.ok(text.includes(`href="${way}"`), path)
        assert.doesNotMatch(text, /Search the APIs/)
      }
    }
  })

  it('every address has the same answer, an account gets three mails an hour, and only a hash of the token is stored', async () => {
    const account = await signUpThroughApi(gateway)
    const link = await linkFor(account)
    const answers = [await askFor('nobody@example.com'), await askFor('not an address'), await askFor(account.email)]
    for (const { status, text } of answers) assert.deepEqual([status, text], [204, ''])
    for (let count = 0; count < 4; count += 1) assert.equal((await askFor(account.email)).status, 204)
    await until(() => linksTo(account.email).length >= 3)
    // An account that comes later is served. By then the mails to the earlier accounts would have
    // arrived.
    await linkFor(await signUpThroughApi(gateway))
    assert.equal(linksTo(account.email).length, 3)
    const rows = await sql<{ row: string }>(gateway, 'select account_links::text as row from account_links')
    assert.ok(rows.every(({ row }) => !row.includes(link.searchParams.get('token') ?? '')))
  })

  it('an account that an operator disabled is mailed nothing', async () => {
    const [disabled, other] = [await signUpThroughApi(gateway), await signUpThroughApi(gateway)]
    await sql(gateway, 'update users set disabled_at = now() where id = $1', [disabled.id])
    await askFor(disabled.email)
    await linkFor(other)
    assert.equal(linksTo(disabled.email).length, 0)
  })

  it('while the mail server hangs, requests for a link are answered at once, and a client may send 20 of them an hour', async (t) => {
    const account = await signUpThroughApi(gateway)
    // It accepts connections and never greets.
    const sockets = new Set<Socket>()
    const hanging = createServer((socket) => sockets.add(socket.on('error', () => undefined))).listen(0, '127.0.0.1')
    await once(hanging, 'listening')
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      hanging.close()
    })
    const { port } = hanging.address() as AddressInfo
    const throttled = await gateway.startWeb({ SMTP_URL: `smtp://127.0.0.1:${port}`, LOGIN_FAILURES_PER_MINUTE: '30' })
    const statuses = []
    for (let count = 0; count < 21; count += 1) statuses.push((await askFor(account.email, throttled)).status)
    assert.deepEqual(statuses, [...Array(20).fill(204), 429])
    const form = { method: 'POST', body: new URLSearchParams({ email: account.email }) }
    const page = await fetch(`${throttled}/forgot`, { ...form, headers: { accept: 'text/html' } })
    assert.match(await page.text(), /Too many requests.*Try again in \d+ (h|min)/s)
  })

  it('a form with a NUL in a field is refused as a JSON body is, and sets no password', async () => {
    const fields = { email: 'a\0b@example.com', token: 'x', newPassword: 'long enough\0' }
    for (const path of ['/forgot', '/reset']) {
      const answer = await fetch(`${gateway.url}${path}`, { method: 'POST', body: new URLSearchParams(fields) })
      const { code } = (await answer.json()) as { code: string }
      assert.deepEqual([answer.status, code], [400, 'INVALID_ENCODING'], path)
    }
  })

  it('a form whose bytes are not UTF-8, or that has a field twice, is refused as a JSON body is', async () => {
    const refusalOf = async (body: string | Buffer) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await fetch(`${gateway.url}/reset`, { method: 'POST', headers, body })
      return ((await answer.json()) as { code: string }).code
    }
    for (const password of ['long enough%FF', 'long enough%ED%A0%80'])
      assert.equal(await refusalOf(`token=x&newPassword=${password}`), 'INVALID_ENCODING', password)
    assert.equal(await refusalOf(Buffer.from('token=x&newPassword=long enough é', 'latin1')), 'INVALID_ENCODING')
    assert.equal(await refusalOf('token=x&newPassword=long+enough&newPassword=long+enough'), 'VALIDATION_ERROR')
    assert.equal(await refusalOf('token=x&newPassword=long+enough+%C3%A9+100%'), 'INVALID_TOKEN')
  })

  it('if the gateway sends no mail, the page says whom to ask, and an operator prints a link that proves no address; a new password or a disabled account ends links', async () => {
    const silent = await gateway.startWeb({ SMTP_URL: '' })
    const account = await signUpThroughApi(gateway)
    const refused = await askFor(account.email, silent)
    assert.deepEqual([refused.status, refused.body.code], [403, 'FORBIDDEN'])
    assert.match(await (await fetch(`${silent}/login`)).text(), /The operator of this gateway can give you a link/)
    const console = await gateway.startConsole()
    const { body } = await send(gateway, `/v1/operator/users/${account.id}/reset-link`, {
      method: 'POST',
      token: gateway.environment.OPERATOR_TOKEN,
      url: console,
    })
    assert.equal(body.user.email, account.email)
    assert.equal((await setPassword(new URL(body.link), 'set by a link')).status, 200)
    assert.equal(await meOn(gateway.url, account.token), 401)
    assert.equal(await logIn(account.email, 'set by a link'), 200)
    const [row] = await sql<{ proven: boolean }>(
      gateway,
      'select email_verified_at is not null as proven from users where id = $1',
      [account.id],
    )
    assert.equal(row?.proven, false)
    const records = await sql<{ action: string }>(
      gateway,
      'select action from audit_log where subject = $1 order by id',
      [account.id],
    )
    assert.deepEqual(
      records.map(({ action }) => action),
      ['user.reset-link', 'user.password'],
    )
    const operator = { token: gateway.environment.OPERATOR_TOKEN ?? '', url: console }
    const other = await signUpThroughApi(gateway)
    for (const [method, path, change] of [
      ['POST', '/password', undefined],
      ['PATCH', '', { disabled: true }],
    ] as const) {
      const link = await linkFor(other)
      const ended = await send(gateway, `/v1/operator/users/${other.id}${path}`, {
        ...operator,
        method,
        ...(change && { body: change }),
      })
      assert.equal(ended.status, 200)
      assert.equal((await setPassword(link, 'an older link')).status, 401, method)
    }
  })
})
