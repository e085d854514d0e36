import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { ERRORS } from '../../src/errors.ts'
import { html } from '../../src/pages/html.ts'
import { send, signUp } from '../support/client.ts'
import { curlLines } from '../support/curl-line.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

/**
 * The first questions of callers: the question, the page that answers it, and words of the answer.
 */
const QUESTIONS: [question: string, page: string, answer: RegExp][] = [
  ['How do I handle rate limits in Python?', '/docs/guides/clients', /retry_after/],
  ['How do I rotate a key?', '/docs/guides/keys', /\/v1\/keys\/[^ ]+\/rotate/],
  ['What does it cost?', '/docs/guides/usage', /decides what a plan costs/],
  ['How do I add my own API?', '/docs/guides/self-hosting', /UPSTREAMS_DIR/],
  ['What happens at the end of the month?', '/docs/guides/usage', /Nothing is charged beyond the plan/],
  ['Do failed calls count?', '/docs/guides/usage', /5xx does not count against the month/],
  ['How do I make 50 calls at once?', '/docs/guides/batch', /\/v1\/batch/],
  ['Does CORS work?', '/docs/guides/browsers', /CORS_ORIGINS/],
  [
    'Is an answer cached, and how do I force a fresh answer?',
    '/docs/guides/caching',
    /ignores <code>Cache-Control: no-cache/,
  ],
  ['How do I share access with colleagues?', '/docs/guides/teams', /\/v1\/teams/],
  ['What attribution do I owe for weather?', '/apis/weather', /Open-Meteo/],
  ['Whom do I contact?', '/docs/guides/usage', /plan of an account\. Contact: /],
]

interface Operation {
  operationId: string
  requestBody?: { content: { 'application/json': { schema: { required?: string[] } } } }
}

describe('the documentation', () => {
  let gateway: Gateway
  const BASE_URL = 'http://localhost:3000'

  before(async () => {
    gateway = await startGateway({ isInProcess: true, environment: { BASE_URL } })
  })
  after(() => gateway.stop())

  const read = async (path: string): Promise<{ status: number; text: string; headers: Headers }> => {
    const answer = await fetch(gateway.url + path)
    return { status: answer.status, text: await answer.text(), headers: answer.headers }
  }
  const local = (address: string): string => address.replace(BASE_URL, '')

  it('the documentation has a place for every error code, to which the docs link of an error leads', async () => {
    const { text } = await read('/docs/errors')
    for (const code of Object.keys(ERRORS)) assert.ok(text.includes(`id="${code}"`), code)
    const account = await signUp(gateway)
    const failures = [
      await send(gateway, '/v1/me'),
      await send(gateway, '/v1/nothing'),
      await send(gateway, '/v1/auth/signup', { body: { email: 'x', password: 'y' } }),
      await send(gateway, '/v1/call/weather/current', { key: account.test }),
    ]
    for (const { body } of failures) {
      const { docs, hint } = body.error?.docs ? body.error : body
      const [page = '', anchor] = local(docs).split('#')
      assert.match((await read(page)).text, new RegExp(`id="${anchor}"`))
      assert.match(hint, /^[A-Z][^.]+\./)
    }
  })

  it('the documentation lists every API for language models, each with a page that answers', async () => {
    const { text, headers } = await read('/llms.txt')
    assert.match(headers.get('content-type') ?? '', /^text\/plain/)
    for (const [slug, { endpoints, terms }] of await loadUpstreams()) {
      const [link = ''] =
        new RegExp(`${BASE_URL}/docs/apis/${slug}\\.md`).exec(text) ?? assert.fail(`${slug} is not listed`)
      const page = await read(local(link))
      assert.equal(page.status, 200)
      assert.match(page.headers.get('content-type') ?? '', /^text\/markdown/)
      for (const [path, { parameters }] of Object.entries(endpoints)) {
        assert.ok(page.text.includes(`GET /v1/call/${slug}${path}`))
        for (const name of Object.keys(parameters.properties))
          assert.ok(page.text.includes(`\`${name}\``), `${slug} ${name}`)
      }
      for (const { data } of Object.values(endpoints))
        for (const name of Object.keys(data.properties))
          assert.ok(page.text.includes(`| \`${name}\` |`), `${slug} ${name}`)
      assert.ok(page.text.includes(terms.summary))
      assert.match(page.text, /^- State: (Healthy|Degraded|Not checked|Not enabled)/m)
    }
    const links = [...text.matchAll(/\((http[^)\s]+)\)/g)].map(([, link = '']) => local(link))
    for (const link of links) {
      const { status } = await read(link)
      assert.equal(status, link === '/mcp' ? 405 : 200, link)
    }
  })

  it('the documentation has each guide as a page and as Markdown, listed for language models', async () => {
    const { text } = await read('/llms.txt')
    const guides = [...text.matchAll(/\/docs\/guides\/([a-z-]+)\.md/g)].map(([, name]) => name)
    assert.equal(guides.length, 18)
    const links = new Set<string>()
    for (const name of guides) {
      const twin = await read(`/docs/guides/${name}.md`)
      assert.match(twin.headers.get('content-type') ?? '', /^text\/markdown/)
      assert.doesNotMatch(twin.text, /\{\{/)
      const [, summary = ''] = new RegExp(`/docs/guides/${name}\\.md\\): (.+)`).exec(text) ?? []
      const [, firstLine = ''] = /^# .+\n\n(.+)/.exec(twin.text.replace(/[*`]/g, '')) ?? []
      assert.ok(
        firstLine.startsWith(summary) && (summary.endsWith('.') || summary === firstLine),
        `${name}: ${summary}`,
      )
      const page = await read(`/docs/guides/${name}`)
      const [, title = ''] = /^# (.+)$/m.exec(twin.text) ?? []
      assert.ok(page.text.includes(`>${title}</h1>`), title)
      for (const [, path = ''] of page.text.matchAll(/href="(\/[^"#]*)/g)) links.add(path)
    }
    // Every link of a guide leads to a page.
    for (const path of links) assert.equal((await read(path)).status, 200, path)
    assert.match(
      (await read('/docs/guides/limits-and-waits')).text,
      /<td data-label="calls per month \(UTC\)">1,000<\/td>/,
    )
    assert.equal((await read('/docs/guides/nothing')).status, 404)
    const { scopes_supported: scopes } = JSON.parse((await read('/.well-known/oauth-authorization-server')).text)
    const authentication = (await read('/docs/guides/authentication.md')).text
    for (const scope of scopes) assert.ok(authentication.includes(`\`${scope}\``), scope)
  })

  it('the documentation has every route that is no endpoint of an API in its reference, and every code in the statuses linked', async () => {
    const document = JSON.parse((await read('/openapi.json')).text)
    const { text } = await read('/docs/reference')
    for (const [path, methods] of Object.entries(
      document.paths as Record<string, Record<string, { operationId: string }>>,
    )) {
      if (path.startsWith('/v1/call/') && !path.includes('{')) continue
      for (const { operationId } of Object.values(methods))
        if (operationId) assert.ok(text.includes(`id="${operationId}"`), path)
    }
    for (const [, code = ''] of text.matchAll(/href="\/docs\/errors#(\w+)"/g)) assert.ok(code in ERRORS, code)
    const cards = text.split('<details class="card operation"').slice(1)
    for (const card of cards) {
      const [, id = ''] = /id="(\w+)"/.exec(card) ?? []
      // An answer has an example, or no body, or is a document with an address of its own.
      assert.match(card, /An example:<\/p><div class="code">|<p>No body\.<\/p>|<p>A document/, id)
      if (card.includes('<span class="verb">GET</span> <code>/<wbr>v1')) assert.match(card, /An example:/, id)
    }
    assert.ok(cards.length > 30)
  })

  it('the documentation marks, in its reference, each member and parameter that is required, and shows bounds and defaults', async () => {
    const document = JSON.parse((await read('/openapi.json')).text)
    const { text } = await read('/docs/reference')
    const cards = text.split('<details class="card operation"').slice(1)
    let required = 0
    for (const methods of Object.values<Record<string, Operation>>(document.paths)) {
      for (const { operationId, requestBody } of Object.values(methods)) {
        const card = cards.find((each) => each.includes(`id="${operationId}"`))
        if (!card) continue
        for (const name of requestBody?.content['application/json'].schema.required ?? []) {
          assert.ok(card.includes(`<code>${name}</code> <span class="must">required</span>`), `${operationId} ${name}`)
          required += 1
        }
      }
    }
    assert.ok(required >= 14, `${required}`)
    const cardOf = (id: string) => cards.find((each) => each.includes(`id="${id}"`)) ?? assert.fail(id)
    assert.match(cardOf('batch'), /list of objects, 1–50 items.*Default: <code>all<\/code>/s)
    assert.match(cardOf('rotateKey'), /integer, 0–604800.*Default: <code>86400<\/code>/s)
    assert.match(cardOf('callApi'), /X-Gateway-Scenario.*\/v1\/call\/weather\/current&#39;/s)
    // The reference shows no pattern, because each pattern has words.
    assert.doesNotMatch(text, /matching \^/)
  })

  it('the documentation answers what callers ask first, one link away from its first page, and its search leads there', async () => {
    const home = (await read('/docs')).text
    for (const [question, page, answer] of QUESTIONS) {
      assert.ok(home.includes(`href="${page}"`), `${question}: /docs has no link to ${page}`)
      assert.match((await read(page)).text, answer, question)
      const found = (await read(`/docs/search.md?${new URLSearchParams({ q: question })}`)).text
      const links = [...found.matchAll(/\]\(([^)#]+)/g)].slice(0, 3).map(([, link = '']) => local(link))
      assert.ok(links.includes(page), `${question}: ${links}`)
    }
  })

  it('the documentation is searched without a script, and each place that is found is there', async () => {
    assert.match((await read('/docs')).text, /<form [^>]*role="search"[^>]*method="get" action="\/docs\/search#found"/)
    for (const query of [
      'rotate a key',
      'RATE_LIMIT_EXCEEDED',
      'POST /v1/batch',
      'weather',
      'cors',
      'months',
      'swagger',
      'outage',
    ]) {
      const { status, text } = await read(`/docs/search?${new URLSearchParams({ q: query })}`)
      assert.equal(status, 200)
      const [, list = ''] = /<ol class="found">(.*?)<\/ol>/s.exec(text) ?? []
      const addresses = [...list.matchAll(/href="([^"]+)"/g)].map(([, address = '']) => address)
      assert.ok(addresses.length > 0, query)
      for (const address of addresses) {
        const [path = '', anchor] = address.split('#')
        const page = await read(path)
        assert.equal(page.status, 200, address)
        if (anchor !== undefined) assert.ok(page.text.includes(`id="${anchor}"`), address)
      }
    }
    assert.match((await read('/docs/search?q=%22%3E%3Cscript%3E')).text, /value="&#34;&#62;&#60;script&#62;"/)
    for (const query of ['', '?q=', '?q=%20', '?q=how+do+i'])
      assert.equal((await read(`/docs/search${query}`)).status, 200, query)
    for (const query of [`?q=${'a'.repeat(201)}`, '?q=a&q=b'])
      for (const path of ['/docs/search', '/docs/search.md'])
        assert.equal((await read(path + query)).status, 400, path + query)
  })

  it('the documentation shows a call on each page that is answered when it is pasted', async () => {
    const account = await signUp(gateway, 'business')
    for (const [slug] of await loadUpstreams()) {
      const { text } = await read(`/docs/apis/${slug}.md`)
      for (const [, address = ''] of text.matchAll(/^curl .* '([^']+)'$/gm)) {
        const answer = await send(gateway, local(address), { key: account.test })
        assert.equal(answer.status, 200, `${address}: ${answer.text}`)
        const shown = `An example of the answer:\n\n\`\`\`json\n${JSON.stringify(answer.body, null, 2)}\n`
        assert.ok(text.includes(shown), address)
      }
    }
  })

  it('every curl command in the guides works unchanged', async () => {
    const [writer, leaver, colleague] = [await signUp(gateway), await signUp(gateway), await signUp(gateway)]
    const { body: listed } = await send(gateway, '/v1/keys', { token: writer.token })
    let teamId = ''
    let callId = ''
    const guides = [...(await read('/llms.txt')).text.matchAll(/\/docs\/guides\/([a-z-]+)\.md/g)].map(
      ([, name]) => name,
    )
    let sent = 0
    for (const name of guides) {
      const account = name === 'your-data' ? leaver : writer
      const { text } = await read(`/docs/guides/${name}.md`)
      const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block)
      for (const { method, url, headers, body, text: line } of blocks.flatMap(curlLines)) {
        // What a reader puts in place of the parts that end in dots.
        const own = (words: string): string =>
          words
            .replace(/agw_(test|live)_…/, account.test)
            .replace(/^Bearer .*…$/, `Bearer ${account.token}`)
            .replace('9f1c…', listed.keys[0].id)
            .replace('3b2e…', teamId)
            .replace(/call_[0-9a-f]{32}/, callId)
            .replace('ada@example.com', colleague.email)
            .replace('"password":"…"', `"password":"${account.password}"`)
        const given = Object.entries(headers).map(([header, value]): [string, string] => [header, own(value)])
        const answer = await fetch(gateway.url + own(local(url)), {
          method,
          headers: given,
          ...(body === undefined ? {} : { body: own(body) }),
        })
        const answered = await answer.text()
        // A test call that fails on purpose, and a reset on a gateway that sends no mail.
        const expected = headers['x-gateway-scenario'] ? 502 : url.endsWith('/v1/auth/reset') ? 403 : undefined
        const isAsSaid = expected === undefined ? answer.status < 400 : answer.status === expected
        assert.ok(isAsSaid, `${name}: ${line}\n${answer.status} ${answered}`)
        if (url.endsWith('/v1/teams')) teamId = JSON.parse(answered).team.id
        callId = answer.headers.get('location')?.split('/').at(-1) ?? callId
        sent += 1
      }
    }
    assert.ok(sent >= 18, `${sent}`)
  })

  it('the documentation is kept by clients as long as it is the same, and sent compressed to clients that ask', async () => {
    for (const path of ['/openapi.json', '/llms.txt', '/docs/errors.md', '/docs/apis/weather.md']) {
      const { headers, text } = await read(path)
      const etag = headers.get('etag') ?? assert.fail(path)
      for (const known of [etag, `W/${etag}`, `"another", ${etag}`, '*'])
        assert.equal((await fetch(gateway.url + path, { headers: { 'if-none-match': known } })).status, 304, known)
      assert.ok(text.length > 0)
    }
    const packed = await fetch(`${gateway.url}/openapi.json`, { headers: { 'accept-encoding': 'gzip;q=1, br;q=0' } })
    assert.equal(packed.headers.get('content-encoding'), 'gzip')
    assert.match(await packed.text(), /^{"openapi":"3.1.0"/)
  })

  it('the documentation escapes what is put into pages', () => {
    const name = `<script>'"&`
    assert.equal(
      html`<a title="${name}">${[name, null, false, 0]}</a>`.text,
      '<a title="&#60;script&#62;&#39;&#34;&#38;">&#60;script&#62;&#39;&#34;&#38;0</a>',
    )
  })

  it('the pages of the documentation load nothing from other hosts, and link only to the hosts of the sources', async () => {
    for (const path of ['/', '/agents', '/docs', '/docs/reference', '/docs/errors', '/signup']) {
      const { text } = await read(path)
      for (const [, address = ''] of text.matchAll(/(?:src|href)="(https?:[^"]+)"/g))
        assert.fail(`${path} loads ${address}`)
    }
  })
})
