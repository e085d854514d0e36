import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { misspeltSettings, unknownVariables } from '../../src/catalog/unknown-variables.ts'

describe('variables of upstreams', () => {
  it('variables of upstreams that name no API or no setting are warned of with the nearest name', async () => {
    const catalog = await loadCatalog(new Map())
    assert.deepEqual(unknownVariables(['UPSTREAM_WEATHER_URL', 'UPSTREAM_CODE_HOST_USER_CAPS'], catalog), [])
    assert.deepEqual(unknownVariables(['UPSTREAM_WEATHR_URL', 'UPSTREAM_WEATHER_ULR', 'UPSTREAM_QQQQQ_KEY'], catalog), [
      'UPSTREAM_WEATHR_URL is not a setting of an API in the catalog; did you mean UPSTREAM_WEATHER_URL?',
      'UPSTREAM_WEATHER_ULR is not a setting of an API in the catalog; did you mean UPSTREAM_WEATHER_URL, _KEY, _CAPS?',
      'UPSTREAM_QQQQQ_KEY is not a setting of an API in the catalog',
    ])
  })

  it('a key for an API whose requests carry none is warned of, and a key for another API is not', async () => {
    const catalog = await loadCatalog(new Map())
    assert.deepEqual(unknownVariables(['UPSTREAM_NEWS_KEY', 'UPSTREAM_CODE_HOST_USER_KEY'], catalog), [])
    assert.deepEqual(unknownVariables(['UPSTREAM_MEAL_RECIPES_KEY', 'UPSTREAM_DICTIONARY_FALLBACK_KEY'], catalog), [
      'UPSTREAM_MEAL_RECIPES_KEY has no effect, because the gateway sends no key to meal-recipes',
      'UPSTREAM_DICTIONARY_FALLBACK_KEY has no effect, because the gateway sends no key to dictionary-fallback',
    ])
  })
})

describe('a variable that is nearly the name of a setting', () => {
  it('a variable that is nearly the name of a setting is warned of with that name, and names that only look alike are not', () => {
    const known = ['PLAN_LIMITS', 'JWT_SECRET', 'HOST', 'PORT', 'SIGNUP', 'OPERATOR_TOKEN', 'CONTACT', 'TLS_CERT_FILE']
    assert.deepEqual(misspeltSettings(['PLAN_LIMIT', 'OPERATR_TOKEN', 'SINGUP', 'CONTACTS', 'JWTSECRET'], known), [
      'PLAN_LIMIT is not a setting; did you mean PLAN_LIMITS?',
      'OPERATR_TOKEN is not a setting; did you mean OPERATOR_TOKEN?',
      'SINGUP is not a setting; did you mean SIGNUP?',
      'CONTACTS is not a setting; did you mean CONTACT?',
      'JWTSECRET is not a setting; did you mean JWT_SECRET?',
    ])
    assert.deepEqual(
      misspeltSettings(
        ['HOME', 'PATH', 'POST', 'LANG', 'npm_config_port', 'PWD', 'HOSTNAME', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
        known,
      ),
      [],
    )
  })
})
