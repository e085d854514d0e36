import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { apiTools } from '../../src/mcp/api-tools.ts'
import { CATALOG_TOOLS } from '../../src/mcp/catalog-tools.ts'

describe('the tools of an API', () => {
  it('the tools of the server of all APIs take less than 2,000 tokens of a model', () => {
    // 1,880 tokens of o200k_base for 8,065 characters.
    assert.ok(JSON.stringify(CATALOG_TOOLS).length <= 8_500, String(JSON.stringify(CATALOG_TOOLS).length))
  })

  it('the tools of an API are made once, whatever operators change of it', async () => {
    const catalog = await loadCatalog(new Map())
    for (const api of catalog.values()) {
      const made = apiTools(api)
      applySettings(api, { tierRequired: 'business', pausedMode: 'refuse' })
      assert.ok(apiTools(api) === made, api.slug)
    }
  })
})
