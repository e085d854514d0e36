import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { apiMarkdown } from '../../src/docs/api-markdown.ts'
import { endpointSection } from '../../src/portal/pages/api-endpoint.ts'
import { latencyOfTheDay } from '../../src/portal/pages/api-latency.ts'

const catalog = await loadCatalog(new Map())

function sectionOf(slug: string): string {
  const api = catalog.get(slug) ?? assert.fail()
  const [endpoint = assert.fail()] = api.endpoints.values()
  return endpointSection({ api, endpoint, index: 0, baseUrl: 'https://gateway.example' }).text
}

it('the page of an API folds the deeper members of a long response, and shows all members of a short one', () => {
  const long = sectionOf('sports-scores')
  assert.match(long, /<summary>\d fields of <code>season<\/code><\/summary><table class="response"/)
  assert.doesNotMatch(long, /fields of <code>games</, 'the second level is in sight')
  assert.doesNotMatch(sectionOf('weather'), /<summary>\d/)
})

it('the page of an API has the form fields of required parameters first', () => {
  for (const { endpoints } of catalog.values()) {
    for (const { parameters } of endpoints.values()) {
      const required = parameters.map((parameter) => parameter.required)
      assert.deepEqual(
        required,
        required.toSorted((a, b) => Number(b) - Number(a)),
      )
    }
  }
})

it('the page of an API draws how long its source took, with a gap for quarters in which nobody called', () => {
  assert.equal(latencyOfTheDay({ median: [null, null], p95: [null, null] }).text, '')
  const { text } = latencyOfTheDay({ median: [100, null, 50, 100], p95: [200, null, 100, 200] })
  assert.match(text, /aria-label="[^"]*: median 50 ms to 100 ms, 95 % of the answers within 200 ms"/)
  assert.match(text, /class="p95" d="M0 2L180 2M360 49L540 49L540 2L720 2"/)
})

it('the page of an API in Markdown names the terms, the licence and the attribution that its file names', () => {
  const licences = [...catalog.values()].map((api) => {
    const { url = '', licence = '', attribution = '' } = api.upstream.terms
    const page = apiMarkdown(api, 'https://gateway.example')
    for (const words of [url, licence, attribution]) assert.ok(page.includes(words), `${api.slug}: ${words}`)
    return licence
  })
  assert.ok(licences.includes('https://creativecommons.org/licenses/by/4.0/'))
})
