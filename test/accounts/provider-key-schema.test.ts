import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { providerKeyAnswer } from '../../src/accounts/provider-key-schema.ts'
import { applySettings, type Catalog, loadCatalog } from '../../src/catalog/catalog.ts'
import type { ProviderKey } from '../../src/db/schema.ts'

describe('the answer about a provider key', () => {
  let catalog: Catalog
  before(async () => {
    catalog = await loadCatalog(new Map())
  })

  const at = (second: number) => new Date(Date.UTC(2026, 10, 23, 12, 0, second))
  /** A key whose last validation failed in second 10. */
  const failed = (fields: Partial<ProviderKey> = {}): ProviderKey => ({
    ...{
      id: 'id',
      user_id: 'user',
      team_id: null,
      slug: 'news',
      secret_id: 'secret',
      sealed: Buffer.alloc(0),
      cap_scope: 'key-1',
    },
    ...{ masked: '********', status: 'unvalidated', saved_at: at(0), last_validated_at: null },
    ...{ failure_code: 'UPSTREAM_ERROR', failed_at: at(10), next_validation_at: null },
    ...fields,
  })
  const failureOf = (key: ProviderKey) => providerKeyAnswer(catalog, key)?.validationFailure

  it('the answer shows a failure if it is the last that is known of the key', () => {
    assert.equal(failureOf(failed())?.code, 'UPSTREAM_ERROR')
    assert.equal(failureOf(failed({ status: 'valid', last_validated_at: at(9) }))?.at, at(10).toISOString())
  })

  it('the answer shows no failure after the API has judged the key, or after any version saved the key again', () => {
    for (const second of [10, 11]) {
      assert.equal(failureOf(failed({ status: 'valid', last_validated_at: at(second) })), null)
    }
    assert.equal(failureOf(failed({ saved_at: at(11) })), null)
  })

  it('the source is not blamed if the limit of the gateway has no room for a validation', () => {
    const messageOf = (failure_code: ProviderKey['failure_code']) => failureOf(failed({ failure_code }))?.message
    assert.match(messageOf('UPSTREAM_CAP_EXHAUSTED') ?? '', /^The gateway’s own limit of requests to News is used up/)
    assert.match(messageOf('UPSTREAM_RATE_LIMITED') ?? '', /^News accepts no more requests/)
  })

  it('a failure says when the key is checked again: within a minute, at a later time, when a held API is resumed, or when its owner asks', () => {
    const next = () => [at(20), null].map((next_validation_at) => failureOf(failed({ next_validation_at }))?.message)
    const api = catalog.get('news') ?? assert.fail()
    const words = 'News did not give a usable answer, so the key could not be checked. The key is saved.'
    assert.deepEqual(next(), [
      `${words} The gateway checks it again within a minute.`,
      `${words} Validate it again when News answers.`,
    ])
    const later = failureOf(failed({ next_validation_at: at(3_610) }))
    assert.equal(
      later?.message,
      `${words} The gateway checks it again at ${later?.nextAt?.slice(0, 16).replace('T', ' ')} UTC.`,
    )
    applySettings(api, { pausedMode: 'hold' })
    assert.deepEqual(next(), [
      `${words} The gateway checks it when the operator resumes News.`,
      `${words} Validate it again when News answers.`,
    ])
    applySettings(api, {})
  })
})
