import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { forbiddenModes, missingForLiveCalls, shareGroupOf } from '../../src/accounts/trust.ts'
import type { Tier } from '../../src/catalog/upstream.ts'

const SECRET = Buffer.from('a secret of this test')
const NOW = Date.UTC(2026, 10, 21)
const HOUR_MS = 3_600_000

const account = (changes: object = {}) => ({
  id: 'account',
  tier: 'developer' as Tier,
  created_at: new Date(NOW - 48 * HOUR_MS),
  email_verified_at: null,
  approved_at: null,
  signup_network: '203.0.113.7',
  ...changes,
})
const groupOf = (changes: object = {}) => shareGroupOf(account(changes), SECRET)

describe('the share group of an account', () => {
  it('the share group of an account consists of hashes of the networks around its address, the widest network first', () => {
    const group = groupOf()
    assert.match(group, /^h[\w-]{10}\/h[\w-]{10}$/)
    assert.equal(groupOf({ id: 'another' }), group)
    assert.notEqual(groupOf({ signup_network: '203.0.113.8' }), group)
    assert.equal(groupOf({ signup_network: '203.0.113.8' }).split('/')[0], group.split('/')[0])
    assert.notEqual(groupOf({ signup_network: '203.0.114.7' }).split('/')[0], group.split('/')[0])
    // An IPv6 /48 may have a quarter.
    assert.match(
      groupOf({ signup_network: '32.1.72.96.0.1.2.255/64' }),
      /^h[\w-]{10}\/q[\w-]{10}\/h[\w-]{10}\/h[\w-]{10}$/,
    )
    assert.ok(!group.includes('203'))
  })

  it('the share group of an account stays the group of its network however old and proven the account is', () => {
    const proven = { created_at: new Date(NOW - 365 * 24 * HOUR_MS), email_verified_at: new Date(NOW) }
    assert.equal(groupOf(proven), groupOf())
  })

  it('the share group of an account is its own id once it has a plan or an approval, and always when it came from no public network', () => {
    assert.equal(groupOf({ approved_at: new Date(NOW) }), 'account')
    assert.equal(groupOf({ tier: 'pro' }), 'account')
    assert.equal(groupOf({ signup_network: null, created_at: new Date(NOW) }), 'account')
  })
})

describe('live calls', () => {
  it('an account that is disabled may make no calls at all, and an account that lacks something may make no live calls', () => {
    const disabled = { ...account({ approved_at: new Date(NOW) }), disabled_at: new Date(NOW) }
    assert.deepEqual(forbiddenModes(disabled, 'open'), ['live', 'test'])
    assert.deepEqual(forbiddenModes({ ...account(), disabled_at: null }, 'approval'), ['live'])
    assert.deepEqual(forbiddenModes({ ...account(), disabled_at: null }, 'open'), [])
  })

  it('live calls need the proof that the sign-up policy demands, and an approval replaces every proof', () => {
    const verified = new Date(NOW)
    for (const [policy, missing, missingWhenVerified] of [
      ['open', undefined, undefined],
      ['closed', undefined, undefined],
      ['verified', 'verification', undefined],
      ['approval', 'approval', 'approval'],
    ] as const) {
      assert.equal(missingForLiveCalls(account(), policy), missing)
      assert.equal(missingForLiveCalls(account({ email_verified_at: verified }), policy), missingWhenVerified)
      assert.equal(missingForLiveCalls(account({ approved_at: verified }), policy), undefined)
    }
  })
})
