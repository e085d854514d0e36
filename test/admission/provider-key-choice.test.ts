import assert from 'node:assert/strict'
import { it } from 'node:test'
import { chooseProviderKey } from '../../src/admission/rights.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { GatewayError } from '../../src/errors.ts'

const news = (await loadCatalog(new Map())).get('news') ?? assert.fail()
const api = { ...news, enabled: false, needsCallerKey: true }
const principal: Parameters<typeof chooseProviderKey>[1] = {
  ...{ accountId: 'account', shareGroup: 'account', mode: 'live', tier: 'pro', version: 'v', keyId: 'key' },
  ...{ isTeamKey: false, providerKeys: new Map(), expiresAt: Number.POSITIVE_INFINITY, missingForLiveCalls: undefined },
}
const connection = { id: 'connection', resource: 'https://gateway/mcp', apis: null, perMonth: null }
const invalid = new Map([['news', { id: 'id', slug: 'news', status: 'invalid' as const, bucket: 'bucket' }]])

it('the refusal of a call by an application without a provider key of its user says to ask the user, because only the user can save a key', () => {
  for (const [providerKeys, code] of [
    [new Map(), 'PROVIDER_KEY_REQUIRED'],
    [invalid, 'PROVIDER_KEY_INVALID'],
  ] as const) {
    const hintFor = (caller: typeof principal): string => {
      try {
        chooseProviderKey(api, { ...caller, providerKeys })
      } catch (error) {
        assert.ok(error instanceof GatewayError && error.code === code)
        return error.details.hint ?? ''
      }
      return assert.fail('nothing was thrown')
    }
    assert.match(hintFor({ ...principal, connection }), /^Ask the user to .*\/account\/provider-keys/)
    assert.doesNotMatch(hintFor(principal), /Ask the user/)
  }
})
