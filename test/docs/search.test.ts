import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { loadConfig } from '../../src/config.ts'
import { loadGuides } from '../../src/docs/guides.ts'
import { docsPlaces, excerptOf, type Place, searchDocs } from '../../src/docs/search.ts'
import { searchMarkdown, searchPage } from '../../src/docs/search-page.ts'
import { SEARCH_WORDS } from '../../src/docs/search-words.ts'
import { ERRORS } from '../../src/errors.ts'
import { hintForUnknownId } from '../../src/telemetry/logged-call.ts'
import { testSecrets } from '../support/gateway.ts'

const environment = {
  ...testSecrets(),
  DATABASE_URL: 'postgres://none',
  REDIS_URL: 'redis://none',
  PORT: '0',
  CONTACT: 'ops@example.com',
}

/** A document with one route. */
const DOCUMENT = {
  tags: [],
  components: {},
  paths: {
    '/v1/keys/{id}/rotate': {
      post: {
        operationId: 'rotateKey',
        summary: 'Replace an API key',
        requestBody: {
          content: {
            'application/json': {
              schema: {
                properties: { overlapSeconds: { type: 'integer', description: 'How long the old key goes on' } },
              },
            },
          },
        },
        responses: {},
      },
    },
  },
}

describe('the search of the documentation', () => {
  let places: Place[]
  const first = (query: string): string | undefined => searchDocs(places, query)[0]?.address

  before(async () => {
    const guides = loadGuides(loadConfig(environment))
    places = docsPlaces(guides, [...(await loadCatalog(new Map())).values()], DOCUMENT)
  })

  it('the search of the documentation finds guides, their sections, APIs, error codes and routes by their names', () => {
    assert.equal(first('quickstart'), '/docs/guides/quickstart')
    assert.equal(first('the end of the month'), '/docs/guides/usage#the-end-of-the-month')
    assert.equal(first('crypto prices'), '/apis/crypto-prices')
    for (const code of Object.keys(ERRORS)) {
      assert.ok(
        searchDocs(places, code).some(({ title }) => title === code),
        code,
      )
    }
    assert.equal(first('POST /v1/keys/{id}/rotate'), '/docs/reference#rotateKey')
    for (const kind of ['Guide', 'Route'])
      assert.ok(
        searchDocs(places, 'overlapSeconds').some((found) => found.kind === kind),
        kind,
      )
  })

  it('guides say how long the log keeps calls, and hints too', () => {
    const kept = (days: string): string => {
      const guides = loadGuides(loadConfig({ ...environment, CALL_LOG_DAYS: days }))
      const { markdown = '' } = guides.find(({ name }) => name === 'errors') ?? {}
      return /keeps calls for ([^.]+)\./.exec(markdown)?.[1] ?? ''
    }
    assert.deepEqual(['0', '1', '7'].map(kept), ['no time: this gateway keeps no log', '1 day', '7 days'])
    assert.match(hintForUnknownId(1), /of the last day;/)
    assert.match(hintForUnknownId(7), /of the last 7 days;/)
  })

  it('the search of the documentation finds words that its pages do not use, and names as they are written or spoken', () => {
    const addresses = new Set(places.map(({ address }) => address))
    const unknown = Object.keys(SEARCH_WORDS).filter((address) => !addresses.has(address))
    // The document of this test has one route.
    assert.deepEqual(
      unknown.filter((address) => !address.startsWith('/docs/reference#')),
      [],
    )
    const expected = {
      webhook: 'guides/async',
      'javascript sdk': 'guides/clients',
      pricing: 'guides/usage#what-it-costs-and-whom-to-contact',
      'ip whitelist': 'guides/keys#addresses',
      sandbox: 'guides/test-mode',
      'refresh token': 'guides/authentication#applications',
      'delete account': 'guides/your-data#leaving',
      chatgpt: 'guides/mcp',
      timeout: 'guides/limits-and-waits#your-time',
      'Cache-Status': 'guides/caching',
      'X-Api-Key': 'guides/authentication#api-keys',
      'request id': 'guides/errors#finding-a-failed-call',
      'ratelimit header': 'guides/limits-and-waits#your-plan',
      'invalid api key': 'errors#INVALID_API_KEY',
      'too many requests': 'errors#RATE_LIMIT_EXCEEDED',
    }
    for (const [query, address] of Object.entries(expected)) assert.equal(first(query), `/docs/${address}`, query)
  })

  it('the search of the documentation puts a title before a heading, and a heading before a text', () => {
    const entry = (title: string, context: string, text: string) => {
      const guide = { name: title, title, summary: '', markdown: `# ${title}\n\n${text}`, html: { text: '' } as never }
      const [found] = docsPlaces([guide], [], { tags: [], components: {}, paths: {} })
      return { ...(found as Place), context }
    }
    const given = [entry('One', '', 'About zebras.'), entry('Zebras', '', 'About one.')]
    assert.deepEqual(
      searchDocs(given, 'zebra').map(({ title }) => title),
      ['Zebras', 'One'],
    )
    const sections = docsPlaces(
      [{ name: 'g', title: 'Zebras', summary: '', markdown: '# Zebras\n\nA.\n\n## Stripes\n\nB.', html: {} as never }],
      [],
      { tags: [], components: {}, paths: {} },
    )
    const ranked = searchDocs([...given.slice(0, 1), ...sections], 'zebra').map(({ address }) => address)
    assert.deepEqual(ranked, ['/docs/guides/g', '/docs/guides/g#stripes', '/docs/guides/One'])
  })

  it('the search of the documentation finds a word with a typing error, and finds nothing for words without a meaning of their own', () => {
    assert.equal(first('quikstart'), '/docs/guides/quickstart')
    for (const query of ['rotaet key', 'ortate key', 'rtoate key'])
      assert.equal(first(query), '/docs/guides/keys#rotate-a-key', query)
    for (const query of ['', '   ', 'how do I', '?!', '\u0000', 'zzzzqqqq']) {
      assert.deepEqual(searchDocs(places, query), [], query)
    }
    assert.match(searchPage('', []).text, /Type what you look for/)
    assert.match(searchPage('zzzzqqqq', []).text, /Nothing fits/)
  })

  it('the search of the documentation shows at most twenty places, each with the part of its text that has a word of the query', () => {
    const found = searchDocs(places, 'key call API limit error weather source account')
    assert.equal(found.length, 20)
    const text = `${'lead '.repeat(80)}needle ${'tail '.repeat(80)}`
    assert.match(excerptOf(text, 'needle'), /^… lead .*needle tail .* …$/)
    assert.ok(excerptOf(text, 'needle').length < 200)
    assert.match(excerptOf(text, 'other'), /^lead lead/)
  })

  it('the search of the documentation compares eight words of a query at most, and shows its text as text', () => {
    const words = Array.from({ length: 8 }, (_, index) => `zzword${index}`)
    assert.deepEqual(searchDocs(places, `${words.join(' ')} weather`), [])
    const query = '"><script>alert(1)</script>'
    const page = searchPage(query, searchDocs(places, query)).text
    assert.doesNotMatch(page, /<script/)
    assert.ok(page.includes(`/docs/search.md?${new URLSearchParams({ q: query })}"`), page)
  })

  it('the search of the documentation gives models a list in Markdown, with whole addresses', () => {
    const text = searchMarkdown('cors', searchDocs(places, 'cors'), 'https://gateway.example')
    assert.match(text, /^# Search\n\n/)
    assert.match(
      text,
      /^- Guide: \[Calls from a web page \(CORS\)\]\(https:\/\/gateway\.example\/docs\/guides\/browsers\)/m,
    )
  })
})
