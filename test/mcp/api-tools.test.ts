import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { apiTools } from '../../src/mcp/api-tools.ts'

describe('the tools of an API', () => {
  it('the tools of an API are made once, whatever operators change of it', async () => {
    const catalog = await loadCatalog(new Map())
    for (const api of catalog.values()) {
      const made = apiTools(api)
      applySettings(api, { tierRequired: 'business', pausedMode: 'refuse' })
      assert.ok(apiTools(api) === made, api.slug)
    }
  })
})
