import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Principal, PrincipalCache } from '../../src/admission/authenticate.ts'
import { GatewayError } from '../../src/errors.ts'

const principal = (version: string): Principal => ({
  accountId: 'account',
  tier: 'developer',
  mode: 'live',
  keyId: 'key',
  isTeamKey: false,
  providerKeys: new Map(),
  expiresAt: Number.POSITIVE_INFINITY,
  version,
  shareGroup: 'account',
  missingForLiveCalls: undefined,
})

/** A cache on a clock that the test moves, with a store that answers as the test says. */
function cacheAt() {
  let now = 1_000_000
  const lookUps: boolean[] = []
  const store: { answer: () => Promise<Principal> } = { answer: async () => principal('first') }
  const cache = new PrincipalCache(() => now)
  const get = () =>
    cache.get('credential', (wasAccepted) => {
      lookUps.push(wasAccepted)
      return store.answer()
    })
  const pass = (seconds: number): void => {
    now += seconds * 1_000
  }
  return { cache, get, pass, lookUps, store }
}

const isUnanswered = async (): Promise<never> => {
  throw new GatewayError('DEPENDENCY_UNAVAILABLE')
}

/** Lets work in the background finish. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a credential that is used', () => {
  it("a credential that was forgotten is looked up at once when it is used again, and not as a stranger's credential", async () => {
    const { cache, get, lookUps, store } = cacheAt()
    const stale = await get()
    store.answer = async () => principal('second')
    cache.forget('credential', stale)
    assert.equal((await get()).version, 'second')
    // A reader that saw the first version reports it too late.
    cache.forget('credential', stale)
    assert.equal((await get()).version, 'second')
    assert.deepEqual(lookUps, [false, true])
  })

  it('a credential that is used and was forgotten is looked up for itself: a look-up of before may be as old', async () => {
    const { cache, get, pass, lookUps, store } = cacheAt()
    const first = await get()
    const before = Promise.withResolvers<Principal>()
    store.answer = () => before.promise
    pass(31)
    await get()
    store.answer = async () => principal('second')
    // If two calls see that it is stale, they share one look-up.
    const gets = [0, 1].map(() => {
      cache.forget('credential', first)
      return get()
    })
    assert.deepEqual(
      (await Promise.all(gets)).map(({ version }) => version),
      ['second', 'second'],
    )
    assert.equal(lookUps.length, 3)
    before.resolve(principal('before'))
    await settled()
    assert.equal((await get()).version, 'second')
    assert.equal(lookUps.length, 3)
  })

  it('a credential that is used is renewed in the background before its look-up is too old, so that no call waits for it', async () => {
    const { get, pass, lookUps, store } = cacheAt()
    await get()
    pass(31)
    store.answer = async () => principal('second')
    assert.equal((await get()).version, 'first')
    await settled()
    assert.equal((await get()).version, 'second')
    assert.deepEqual(lookUps, [false, true])
  })

  it('a credential that is used is looked up anew before it is used again after a minute of rest', async () => {
    const { get, pass, store } = cacheAt()
    await get()
    pass(61)
    store.answer = async () => principal('second')
    assert.equal((await get()).version, 'second')
  })
})

describe('while look-ups are not answered', () => {
  it('while look-ups are not answered, a credential that was known is kept for a minute at least, and tried once a second', async () => {
    const { get, pass, lookUps, store } = cacheAt()
    await get()
    pass(59)
    store.answer = isUnanswered
    for (let second = 0; second < 60; second += 1) {
      assert.equal((await get()).version, 'first')
      await settled()
      assert.equal((await get()).version, 'first')
      await settled()
      pass(1)
    }
    assert.equal(lookUps.length, 1 + 60)
    pass(1)
    await assert.rejects(get(), { code: 'DEPENDENCY_UNAVAILABLE' })
  })

  it('while look-ups are not answered, a credential that rested for a minute is kept too', async () => {
    const { get, pass, store } = cacheAt()
    await get()
    pass(61)
    store.answer = isUnanswered
    assert.equal((await get()).version, 'first')
  })
})

describe('a credential that ended', () => {
  it('a credential that ended is refused from the call after its renewal on', async () => {
    const { get, pass, store } = cacheAt()
    await get()
    pass(31)
    store.answer = async () => {
      throw new GatewayError('INVALID_API_KEY')
    }
    await get()
    await settled()
    await assert.rejects(get(), { code: 'INVALID_API_KEY' })
  })

  it('a credential that ended at a time that was known is not served past it, although look-ups are not answered', async () => {
    const { get, pass, store } = cacheAt()
    store.answer = async () => ({ ...principal('first'), expiresAt: 1_010_000 })
    await get()
    store.answer = isUnanswered
    pass(9)
    assert.equal((await get()).version, 'first')
    pass(1)
    await assert.rejects(get(), { code: 'DEPENDENCY_UNAVAILABLE' })
  })
})

it('the result of a look-up that began before the cache was cleared is not cached, because it may be older', async () => {
  const { cache, get, lookUps, store } = cacheAt()
  const before = Promise.withResolvers<Principal>()
  store.answer = () => before.promise
  const gets = [get(), get()]
  cache.clear()
  before.resolve(principal('before'))
  assert.deepEqual(
    (await Promise.all(gets)).map(({ version }) => version),
    ['before', 'before'],
  )
  store.answer = async () => principal('second')
  assert.equal((await get()).version, 'second')
  assert.equal(lookUps.length, 2)
})
