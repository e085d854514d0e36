import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as forward, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { startTcpProxy } from '../chaos/tcp-proxy.ts'
import { axeViolations, RULES_OF_LOOK } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const launched = await launchBrowser()
const skip = launched ? false : 'there is no Chromium here'

describe('the console in a browser', { skip }, () => {
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: RedisConnection
  let url: string
  const requested: string[] = []
  const problems: string[] = []

  before(async () => {
    browser = launched as Browser
    upstream = await startUpstreamServer()
    const upstreams = await loadUpstreams()
    for (const [slug, { endpoints }] of upstreams)
      upstream.play(slug, () => Object.values(endpoints)[0]?.example.response)
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        ...upstream.environment(...upstreams.keys()),
        PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":50}}',
      },
    })
    account = await signUp(gateway)
    redis = openRedis([gateway.services.redisUrl], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
    await gateway.startProcess('workers/probe.ts')
    url = await gateway.startConsole()
    context = await browser.newContext()
    page = await context.newPage()
    page.on('request', (request) => requested.push(request.url()))
    page.on('pageerror', (error) => problems.push(String(error)))
    page.on('dialog', (dialog) => {
      problems.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
  })
  after(async () => {
    await browser.close()
    await closeRedis(redis)
    await gateway.stop()
    await upstream.close()
  })

  const place = (name: string) => page.locator(`[data-place="${name}"]`)
  /** The browser looks by itself, which costs less than to ask it again and again. */
  const shows = (name: string, text: RegExp) => place(name).filter({ hasText: text }).waitFor({ timeout: 45_000 })
  const isLive = (of: Page) => of.locator('#live', { hasText: /^live$/ }).waitFor({ timeout: 45_000 })
  /** The page of an API, which has the buttons that act on it. */
  const pressOn = async (api: Page, action: string) => {
    await api.locator(`button[data-action="${action}"]`).click()
    if (action === 'pause') await api.getByLabel(/hold them/).check()
    await api.locator('#confirm-yes').click()
    const notice = api.locator('#notice', { hasText: ': ' })
    await notice.waitFor({ timeout: 45_000 })
    return (await notice.textContent()) ?? ''
  }
  const openApi = async (slug: string) => {
    const api = await context.newPage()
    api.on('request', (request) => requested.push(request.url()))
    await api.goto(`${url}/queues/${slug}`)
    await isLive(api)
    return api
  }
  /** As the command line does it. */
  const operate = async (action: 'pause' | 'resume', slug: string) => {
    const { status } = await fetch(`${url}/v1/operator/upstreams/${slug}/${action}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.environment.OPERATOR_TOKEN}`,
        ...(action === 'pause' && { 'content-type': 'application/json' }),
      },
      ...(action === 'pause' && { body: '{"mode":"hold"}' }),
    })
    assert.equal(status, 200)
  }
  const call = (path: string) => send(gateway, `/v1/call/${path}`, { key: account.live })
  /**
   * axe finds no serious fault, by all rules or by these. It looks at all elements, because a page
   * that lacks the row of an API at its next update loads itself again.
   */
  const checkAccess = async (of = page, rules?: string[]) => {
    const violations = await axeViolations(of, rules, Number.POSITIVE_INFINITY)
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    assert.deepEqual(serious, [], JSON.stringify(serious, null, 1).slice(0, 2_000))
  }

  it('the console in a browser lets in only a person with the token, who needs no mouse', async () => {
    await page.goto(url)
    await checkAccess()
    await page.keyboard.type('this is not the token')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    assert.match((await page.getByRole('alert').textContent()) ?? '', /Wrong token/)
    await page.getByLabel('Operator token').focus()
    await page.keyboard.type(gateway.environment.OPERATOR_TOKEN ?? '')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${url}/`)
    await isLive(page)
    await shows('headline', /\d+ (?:enabled )?APIs (?:are healthy|degraded)/)
  })

  it('the console in a browser has at least twenty APIs on a screen, a line each, finds each by name, and leads to its page', async () => {
    await page.setViewportSize({ width: 1_440, height: 900 })
    const rows = page.locator('#apis tbody tr')
    const count = await rows.evaluateAll((all) => {
      all[0]?.closest('section')?.scrollIntoView()
      return all.filter((row) => row.getBoundingClientRect().bottom <= 900).length
    })
    assert.ok(count >= 20, `${count} APIs`)
    const isShown = async () => await page.locator('#trivia').isVisible()
    await page.locator('#filter').fill('weather')
    assert.deepEqual([await rows.filter({ visible: true }).count(), await isShown()], [1, false])
    await page.locator('#filter').fill('')
    assert.equal(await isShown(), true)
    await page.locator('#trivia a').click()
    await page.waitForURL(`${url}/queues/trivia`)
    await page.getByRole('heading', { level: 1, name: /^trivia/ }).waitFor()
    await page.goBack()
    await isLive(page)
  })

  it('the console in a browser draws 15 minutes, an hour and a day', async () => {
    for (const range of ['15 min', '24 h', '1 h']) {
      await page.getByLabel(range, { exact: true }).check()
      await until(async () => (await page.locator('#chart-calls canvas').count()) === 1)
    }
    const { day } = (await (await context.request.get(`${url}/overview/day`)).json()) as { day: { at: number[] } }
    assert.equal(day.at.length, 96)
  })

  it('the console in a browser reports that it has no update while the console sends nothing, and is live again afterwards, with the same focus and selected text', async (t) => {
    const network = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(url).port) })
    t.after(() => network.close())
    const cutOff = await context.newPage()
    await cutOff.goto(`http://127.0.0.1:${network.port}`)
    await isLive(cutOff)
    await cutOff.locator('#trivia a').focus()
    await cutOff.evaluate(`getSelection().selectAllChildren(document.querySelector('#trivia .pill'))`)
    const held = '[document.activeElement.textContent, String(getSelection())]'
    const before = (await cutOff.evaluate(held)) as [string, string]
    assert.equal(before[0], 'trivia')
    assert.match(before[1], /Healthy/)
    const upFor = async () => await cutOff.locator('[data-place="processes"]').textContent()
    const earlier = await upFor()
    network.blackHole()
    await cutOff.locator('#live', { hasText: /^no news$/ }).waitFor({ timeout: 45_000 })
    const headline = cutOff.locator('[data-place="headline"]')
    assert.match(
      (await headline.textContent()) ?? '',
      /^The console has sent no update since .*: the figures below may be out of date\.$/,
    )
    network.heal()
    await isLive(cutOff)
    await headline.filter({ hasText: /APIs/ }).waitFor()
    await until(async () => (await upFor()) !== earlier)
    assert.deepEqual(await cutOff.evaluate(held), before)
    await cutOff.close()
  })

  it('the console in a browser stays while a proxy before it answers 502, and is live again afterwards', async () => {
    const behindProxy = await context.newPage()
    let isAway = true
    let visits = 0
    await behindProxy.route(/\/(overview\/events)?$/, async (route) => {
      const isPage = route.request().url() === `${url}/`
      if (isPage) visits += 1
      // The page itself loaded before the console stopped.
      if (!isAway || (isPage && visits === 1)) return await route.continue()
      await route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' })
    })
    await behindProxy.goto(url)
    await until(() => visits >= 2)
    assert.equal(await behindProxy.locator('#live').textContent({ timeout: 5_000 }), 'reconnecting')
    isAway = false
    await until(async () => (await behindProxy.locator('#live').textContent({ timeout: 5_000 })) === 'live')
    await behindProxy.close()
  })

  /**
   * An access proxy in front of the console. `refuse` is its answer after its own session has
   * ended.
   */
  const openProxy = async () => {
    const seen: string[] = []
    let refuse: ((path: string, response: ServerResponse) => boolean) | undefined
    const server: Server = createServer((request, response) => {
      const path = request.url ?? ''
      seen.push(`${request.headers['sec-fetch-dest']} ${path}`)
      if (refuse?.(path, response)) return
      const { method, headers } = request
      const asked = forward(url + path, { method, headers }, (answer) => {
        answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers))
      })
      asked.on('error', () => response.destroy())
      response.on('close', () => asked.destroy())
      asked.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return {
      port,
      seen,
      refuse: (how: typeof refuse) => {
        refuse = how
        server.closeAllConnections()
      },
      close: () => void server.close().closeAllConnections(),
    }
  }

  it('the console in a browser shows the log-in of an access proxy when its session ends under an open page', async () => {
    for (const [path, status] of [
      ['/', 302],
      ['/queues', 403],
    ] as const) {
      const proxy = await openProxy()
      const behindProxy = await context.newPage()
      await behindProxy.goto(`http://127.0.0.1:${proxy.port}${path}`)
      await isLive(behindProxy)
      proxy.refuse((asked, response) => {
        const isLogin = asked === '/login' || status === 403
        // The proxy redirects to another origin, which only the load of a whole page may follow.
        if (isLogin) response.writeHead(status === 403 ? 403 : 200, { 'content-type': 'text/html' }).end('<h1>Prove it')
        else response.writeHead(302, { location: `http://localhost:${proxy.port}/login` }).end()
        return true
      })
      await behindProxy.getByRole('heading', { name: 'Prove it' }).waitFor()
      await behindProxy.close()
      proxy.close()
    }
  })

  it('the console in a browser reloads its page once if a proxy refuses only its live updates', async () => {
    const proxy = await openProxy()
    const behindProxy = await context.newPage()
    await behindProxy.goto(`http://127.0.0.1:${proxy.port}`)
    await isLive(behindProxy)
    proxy.refuse((path, response) => {
      if (path === '/overview/events') response.writeHead(403).end()
      return path === '/overview/events'
    })
    await until(() => proxy.seen.filter((request) => request === 'empty /').length >= 4)
    assert.equal(proxy.seen.filter((request) => request === 'document /').length, 2)
    proxy.refuse(undefined)
    await isLive(behindProxy)
    await behindProxy.close()
    proxy.close()
  })

  it('the console in a browser shows a queue grow while an upstream is held, without reloading', async () => {
    const held = Promise.withResolvers<void>()
    const { example } = (await loadUpstreams()).get('code-host-search')?.endpoints['/repos'] ?? assert.fail()
    upstream.play('code-host-search', async () => {
      await held.promise
      return example.response
    })
    const calls = Array.from({ length: 8 }, (_, index) => call(`code-host-search/repos?q=q${index}`))
    await shows('code-host-search waiting', /^[1-9]\d* oldest/)
    await shows('code-host-search active', /^[1-9]/)
    await shows('tiles', /oldest \d/)
    await shows('code-host-search cap', /^ [1-9]\d* %/)
    held.resolve()
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200)
    await shows('code-host-search waiting', /^0$/)
    await shows('code-host-search active', /^0$/)
  })

  it('the console in a browser pauses and resumes a queue after asking, and says so', async () => {
    upstream.play('timezone', () => ({ dateTime: '2026-01-01T00:00:00', timeZone: 'Europe/Rome' }))
    const api = await openApi('timezone')
    await api.locator('button[data-action="pause"]').click()
    await api.getByRole('button', { name: 'Cancel' }).click()
    assert.doesNotMatch((await place('timezone state').textContent()) ?? '', /Paused/)
    assert.match(await pressOn(api, 'pause'), /^Pause timezone: done\.$/)
    await shows('timezone state', /Paused holds calls/)
    await shows('attention', /Paused timezone/)
    await shows('audit', /upstream\.pause timezone/)
    const seen = upstream.arrivalsOf('timezone').length
    const waiting = call('timezone/current?timezone=Europe/Rome')
    await shows('timezone waiting', /^1 oldest/)
    assert.equal(upstream.arrivalsOf('timezone').length, seen)
    await api.locator('button[data-action="resume"]').waitFor()
    await checkAccess(api)
    await pressOn(api, 'resume')
    await until(() => upstream.arrivalsOf('timezone').length > seen)
    await waiting
    await shows('timezone waiting', /^0$/)
    await api.close()
  })

  it('the console in a browser shows an upstream turn Down, since when and why, and come back', async () => {
    upstream.play('dictionary', (_arrival, response) => void response.writeHead(500).end())
    await until(async () => (await call('dictionary/define?word=polenta')).body.error.code === 'UPSTREAM_UNAVAILABLE')
    await shows('dictionary state', /Down/)
    await shows('headline', /Down dictionary has been down for .*HTTP 500 in .*next attempt/)
    await shows('attention', /Down dictionary.*allers get 502/)
    await shows('changes', /Down dictionary/)
    await shows('errors', /dictionaryUPSTREAM_UNAVAILABLE/)
    upstream.play('dictionary', () => [{ word: 'polenta', meanings: [], phonetics: [] }])
    // The operator's probe need not wait for the breaker's pause. It is the first of three good
    // attempts.
    const api = await openApi('dictionary')
    assert.match(await pressOn(api, 'probe'), /Probe dictionary: HTTP 200 in \d+ ms/)
    await shows('dictionary state', /Degraded/)
    await shows('changes', /Degraded dictionary three attempts in a row succeeded/)
    // The failures are forgotten, as they are after some minutes.
    await redis.hset(upstreamKeys.health('dictionary'), 'fail', '0')
    await pressOn(api, 'probe')
    await shows('dictionary state', /Healthy/)
    await api.close()
  })

  it('the console in a browser shows a script in a parameter as text, and the page of a queue follows what happens there', async () => {
    await operate('pause', 'geocoding')
    const script = '<script>document.title="taken"</script><img src=x onerror=alert(1)>'
    const leave = new AbortController()
    const waiting = send(gateway, `/v1/call/geocoding/search?q=${encodeURIComponent(script)}&secret=hush`, {
      key: account.live,
      signal: leave.signal,
    })
    await shows('geocoding waiting', /^1 oldest/)
    const board = await context.newPage()
    board.on('request', (request) => requested.push(request.url()))
    await board.goto(`${url}/queues/geocoding`)
    await until(async () => (await board.locator('body').textContent())?.includes('<script>document.title') === true)
    const text = (await board.locator('body').textContent()) ?? ''
    assert.ok(!text.includes('hush'), 'an undeclared parameter is redacted')
    assert.notEqual(await board.title(), 'taken')
    await checkAccess(board)
    leave.abort()
    await assert.rejects(waiting)
    await board.getByText('No call waits or runs').waitFor()
    await board.goto(`${url}/queues`)
    await checkAccess(board)
    await board.close()
    await operate('resume', 'geocoding')
  })

  it('the console in a browser has no serious fault for assistive technology, light or dark, wide or phone', async () => {
    for (const [colorScheme, width, rules] of [
      ['light', 1_280, undefined],
      ['dark', 360, RULES_OF_LOOK],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      await checkAccess(page, rules)
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      assert.ok(Number(overflow) <= 0, `${width} px wide: ${overflow} px too many`)
    }
  })

  it('the console in a browser has pages of the audit log and of runbooks without a serious fault, and a link of a problem leads to its runbook', async () => {
    const reading = await context.newPage()
    await reading.setViewportSize({ width: 360, height: 800 })
    for (const path of ['/audit?action=upstream', '/runbooks']) {
      await reading.goto(url + path)
      await checkAccess(reading)
      const overflow = await reading.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      assert.ok(Number(overflow) <= 0, `${path}: ${overflow} px too many`)
    }
    await operate('pause', 'timezone')
    await shows('attention', /Paused timezone/)
    const [href = ''] = await place('attention')
      .locator('li', { hasText: 'timezone' })
      .getByRole('link', { name: /^Runbook/ })
      .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''))
    await reading.goto(url + href)
    await reading.locator('h2:target', { hasText: 'Paused' }).waitFor()
    await reading.close()
    await operate('resume', 'timezone')
  })

  it('the console in a browser wraps very long names, so that no page of accounts and calls scrolls sideways', async () => {
    const email = `${'e'.repeat(60)}@${'d'.repeat(60)}.${'c'.repeat(60)}.example.com`
    const signup = await send(gateway, '/v1/auth/signup', { body: { email, password: 'a long enough password' } })
    const { token, user } = signup.body
    const { body } = await send(gateway, '/v1/keys', {
      token,
      body: { label: 'k'.repeat(255), environment: 'test' },
    })
    assert.equal((await send(gateway, '/v1/call/random-facts/random', { key: body.key })).status, 200)
    const reading = await context.newPage()
    for (const path of [`/accounts/${user.id}`, '/accounts', `/calls?account=${user.id}`]) {
      await until(async () => {
        await reading.goto(url + path)
        return (await reading.getByText('random-facts').count()) > 0 || path === '/accounts'
      })
      await reading.locator('details').evaluateAll((all) => {
        for (const one of all) one.setAttribute('open', '')
      })
      for (const width of [360, 1_280]) {
        await reading.setViewportSize({ width, height: 800 })
        const overflow = await reading.evaluate('document.documentElement.scrollWidth - innerWidth')
        assert.ok(Number(overflow) <= 0, `${path}, ${width} px wide: ${overflow} px too many`)
      }
    }
    await reading.close()
  })

  it('the console in a browser copies a command of the book', async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const book = await context.newPage()
    await book.goto(`${url}/book/tasks`)
    const block = book.locator('.code').first()
    await block.getByRole('button', { name: /^Copy/ }).click()
    await block.getByRole('button', { name: /^Copied/ }).waitFor()
    assert.equal(await book.evaluate('navigator.clipboard.readText()'), await block.locator('code').textContent())
    await book.close()
  })

  it('the console in a browser requested nothing from another host and broke nothing', () => {
    assert.deepEqual(
      [
        ...new Set(
          requested
            .map((to) => new URL(to))
            .filter(({ protocol }) => protocol !== 'data:')
            .map(({ origin }) => origin),
        ),
      ],
      [url],
    )
    assert.deepEqual(problems, [])
  })
})
