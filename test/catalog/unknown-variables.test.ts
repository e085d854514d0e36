import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { unknownVariables } from '../../src/catalog/unknown-variables.ts'

describe('variables of upstreams', () => {
  it('variables of upstreams that name no API or no setting are warned of with the nearest name', async () => {
    const catalog = await loadCatalog(new Map())
    assert.deepEqual(unknownVariables(['UPSTREAM_WEATHER_URL', 'UPSTREAM_CODE_HOST_USER_CAPS'], catalog), [])
    assert.deepEqual(unknownVariables(['UPSTREAM_WEATHR_URL', 'UPSTREAM_WEATHER_ULR', 'UPSTREAM_QQQQQ_KEY'], catalog), [
      'UPSTREAM_WEATHR_URL is the setting of no API; did you mean UPSTREAM_WEATHER_URL?',
      'UPSTREAM_WEATHER_ULR is the setting of no API; did you mean UPSTREAM_WEATHER_URL, _KEY, _CAPS?',
      'UPSTREAM_QQQQQ_KEY is the setting of no API',
    ])
  })
})
