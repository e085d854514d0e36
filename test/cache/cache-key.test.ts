import assert from 'node:assert/strict'
import { it } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'

it("an answer that is a caller's own is shared neither with another account nor under another provider key", () => {
  const call = { slug: 'shop', endpoint: '/orders', parameters: {}, extra: [], raw: false }
  const own = { ...call, accountId: 'owner', providerKey: { id: '1', bucket: 'key-1' } }
  const others = [
    { ...own, accountId: 'stranger' },
    // A key of a team calls for the account that owns the team, under the provider key of the team.
    { ...own, providerKey: { id: '2', bucket: 'key-2' } },
    { ...call, accountId: 'owner' },
  ]
  const answerOf = (of: typeof own | (typeof others)[number]) =>
    cacheKeys({ cache: { seconds: 60, perCaller: true } }, of)?.answer
  assert.equal(new Set([own, ...others].map(answerOf)).size, 4)
})

it('an answer that was mapped by a document of an own API is not used for a later document', () => {
  const call = { slug: 'shop', endpoint: '/orders', parameters: {}, extra: [], raw: false, accountId: 'a' }
  const answers = [call, { ...call, document: 'before' }, { ...call, document: 'after' }].map(
    (of) => cacheKeys({ cache: { seconds: 60 } }, of)?.answer,
  )
  assert.equal(new Set(answers).size, 3)
})
