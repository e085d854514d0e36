import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { contactWords } from '../../src/catalog/limit-words.ts'
import { contactHref, isContact } from '../../src/config/upstream-variables.ts'
import type { UpstreamSettings } from '../../src/config.ts'

async function apiOf(slug: string, isOperatorNamed: boolean, settings: UpstreamSettings = {}) {
  return (await loadCatalog(new Map([[slug, settings]]), { isOperatorNamed })).get(slug) ?? assert.fail()
}

test('a source that limits strangers gives its higher cap to an operator who names a contact, and to a key', async () => {
  const stranger = await apiOf('encyclopedia', false)
  assert.deepEqual(stranger.caps, { concurrency: 3, rates: [{ max: 10, seconds: 60 }] })
  assert.match(
    contactWords(stranger) ?? '',
    /^encyclopedia: Wikimedia .*its cap is 10 per minute\. If you set CONTACT, the cap is 60/,
  )
  for (const named of [await apiOf('encyclopedia', true), await apiOf('encyclopedia', false, { key: 'k' })]) {
    assert.deepEqual(named.caps, { concurrency: 3, rates: [{ max: 60, seconds: 60 }] })
    assert.equal(contactWords(named), undefined)
  }
})

test("a cap that the operator sets holds whether a contact is named or not, and an operator's key ends the lower cap", async () => {
  const set = await apiOf('encyclopedia', false, { caps: { rates: [{ max: 5, seconds: 60 }] } })
  assert.deepEqual(set.caps.rates, [{ max: 5, seconds: 60 }])
  assert.doesNotMatch(contactWords(set) ?? '', /its cap/)
  const api = await apiOf('encyclopedia', false)
  applySettings(api, { key: 'k' })
  assert.deepEqual(api.caps.rates, [{ max: 60, seconds: 60 }])
  applySettings(api, {})
  assert.deepEqual(api.caps.rates, [{ max: 10, seconds: 60 }])
})

test('a source that asks for a contact but has no lower cap is listed too, and no other source is', async () => {
  const catalog = await loadCatalog(new Map())
  const asking = [...catalog.values()].filter((api) => contactWords(api) !== undefined).map(({ slug }) => slug)
  assert.deepEqual(asking, ['encyclopedia', 'geocoding'])
  assert.deepEqual(catalog.get('geocoding')?.caps, (await apiOf('geocoding', true)).caps)
})

test('a contact is an address that reaches somebody, and not the address of the project', () => {
  for (const contact of [
    'ops@example.org',
    'mailto:ops@example.org',
    'https://example.org/contact',
    'tel:+31201234567',
  ]) {
    assert.ok(isContact(contact), contact)
  }
  const project = 'https://github.com/agent-api-gateway/agent-api-gateway'
  for (const contact of ['', 'me', 'https://', '@', 'ops at example.org', project, `${project}/issues`]) {
    assert.ok(!isContact(contact), contact)
  }
})

test('a contact that is an address becomes a link, and any other text stays a text', () => {
  assert.equal(contactHref('ops@example.org'), 'mailto:ops@example.org')
  for (const address of ['mailto:ops@example.org', 'https://example.org/contact', 'tel:+31201234567'])
    assert.equal(contactHref(address), address)
  for (const text of [
    'ask @ops in the chat',
    'Ops <ops@example.org>',
    'javascript:alert(1)',
    'https://example.org, or me',
  ])
    assert.equal(contactHref(text), undefined, text)
})
