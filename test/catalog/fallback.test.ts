import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { sourceName, sourceNamed, sourcesOf } from '../../src/catalog/fallback.ts'
import { unknownVariables } from '../../src/catalog/unknown-variables.ts'
import type { UpstreamSettings } from '../../src/config.ts'

test('a fallback source is a source of its own, and no API of the catalog', async () => {
  const catalog = await loadCatalog(new Map())
  const api = catalog.get('dictionary') ?? assert.fail()
  const fallback = api.fallback ?? assert.fail()
  assert.equal(sourceNamed(catalog, fallback.slug), fallback)
  assert.equal(sourceNamed(catalog, 'dictionary'), api)
  assert.equal(sourceNamed(catalog, 'weather.fallback'), undefined)
  assert.equal(catalog.get(fallback.slug), undefined)
  assert.equal(sourcesOf(catalog).length, catalog.size + 1)
  assert.notDeepEqual(fallback.caps, api.caps)
  assert.deepEqual(
    [sourceName(api.upstream), sourceName(fallback.upstream)],
    ['dictionaryapi.dev', 'freedictionaryapi.com'],
  )
  assert.deepEqual(fallback.upstream.mayLack, api.upstream.mayLack)
  assert.equal(fallback.endpoints.get('/define')?.declaration.data, api.endpoints.get('/define')?.declaration.data)
})

test('a fallback source has an address and caps of its own in the environment, and none if only the first source has an address', async () => {
  const first: [string, UpstreamSettings] = ['dictionary', { url: 'http://127.0.0.1:1' }]
  const second: [string, UpstreamSettings] = [
    'dictionary-fallback',
    { url: 'http://127.0.0.1:2', caps: { concurrency: 9 } },
  ]
  const both = (await loadCatalog(new Map([first, second]))).get('dictionary')
  assert.equal(both?.baseUrl, 'http://127.0.0.1:1')
  assert.equal(both?.fallback?.baseUrl, 'http://127.0.0.1:2')
  assert.equal(both?.fallback?.caps.concurrency, 9)
  assert.equal((await loadCatalog(new Map([first]))).get('dictionary')?.fallback, undefined)
  assert.notEqual((await loadCatalog(new Map([second]))).get('dictionary')?.fallback, undefined)
  const catalog = await loadCatalog(new Map([first, second]))
  assert.deepEqual(unknownVariables(['UPSTREAM_DICTIONARY_FALLBACK_URL'], catalog), [])
})

test('a pause of an API, or its removal, applies to its fallback source too, but the caps that operators set do not', async () => {
  const api = (await loadCatalog(new Map())).get('dictionary') ?? assert.fail()
  const caps = api.fallback?.caps
  applySettings(api, { enabled: false, pausedMode: 'refuse', caps: { concurrency: 1 } })
  assert.deepEqual([api.fallback?.isSwitchedOff, api.fallback?.pausedMode], [true, 'refuse'])
  assert.deepEqual(api.fallback?.caps, caps)
  applySettings(api, {})
  assert.deepEqual([api.fallback?.isSwitchedOff, api.fallback?.pausedMode], [false, undefined])
})
