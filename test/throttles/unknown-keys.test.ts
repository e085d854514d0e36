import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { ClientBuckets } from '../../src/throttles/client-buckets.ts'
import { UnknownKeys } from '../../src/throttles/unknown-keys.ts'

const nobody = async () => undefined

describe('unknown keys', () => {
  it('unknown keys of a client are looked up a limited number of times in a minute and then refused with 429, and other clients are not affected', async () => {
    const keys = new UnknownKeys(3)
    let lookUps = 0
    const send = (key: string, address: string) =>
      keys.lookUp(key, address, () => {
        lookUps += 1
        return nobody()
      })
    for (const key of ['a', 'b', 'c']) await assert.rejects(send(key, '192.0.2.1'), { code: 'INVALID_API_KEY' })
    await assert.rejects(send('d', '192.0.2.1'), (error: GatewayError) => {
      assert.equal(error.code, 'RATE_LIMIT_EXCEEDED')
      assert.ok((error.details.retryAfterMs ?? 0) <= 20_000 && (error.details.retryAfterMs ?? 0) > 19_000)
      return true
    })
    assert.equal(lookUps, 3)
    await assert.rejects(send('e', '192.0.2.2'), { code: 'INVALID_API_KEY' })
    assert.equal(lookUps, 4)
  })

  it('unknown keys of the 65,536 clients of an IPv6 /48 are looked up as often as unknown keys of four clients', async () => {
    const keys = new UnknownKeys(3)
    let lookUps = 0
    const send = async (subnet: number, prefix = '2001:4860:1') => {
      const find = () => {
        lookUps += 1
        return nobody()
      }
      await assert.rejects(keys.lookUp(`${prefix} ${subnet}`, `${prefix}:${subnet.toString(16)}::1`, find))
    }
    await Promise.all(Array.from({ length: 50 }, (_, subnet) => send(subnet)))
    assert.equal(lookUps, 12)
    await send(1, '2001:4860:2')
    assert.equal(lookUps, 13, 'another network is looked up')
  })

  it('unknown keys that come again at once are refused without a look-up', async () => {
    const keys = new UnknownKeys(0)
    await assert.rejects(keys.lookUp('a', '192.0.2.1', nobody), { code: 'INVALID_API_KEY' })
    await assert.rejects(
      keys.lookUp('a', '192.0.2.1', () => assert.fail('looked up')),
      { code: 'INVALID_API_KEY' },
    )
  })

  it('unknown keys that are found, or whose look-up gets no answer, use up nothing', async () => {
    const keys = new UnknownKeys(1)
    for (let count = 0; count < 5; count += 1) {
      assert.equal(await keys.lookUp('a', '192.0.2.1', async () => 'found'), 'found')
      const unanswered = keys.lookUp('a', '192.0.2.1', async () => {
        throw new GatewayError('DEPENDENCY_UNAVAILABLE')
      })
      await assert.rejects(unanswered, { code: 'DEPENDENCY_UNAVAILABLE' })
    }
  })

  it('unknown keys are counted if their look-up ends in a refusal of the credential, and then the next look-up is made', async () => {
    const keys = new UnknownKeys(2)
    const disabled = async () => {
      throw new GatewayError('INVALID_API_KEY')
    }
    for (let count = 0; count < 2; count += 1)
      await assert.rejects(keys.lookUp('a', '192.0.2.1', disabled), { code: 'INVALID_API_KEY' })
    await assert.rejects(keys.lookUp('a', '192.0.2.1', disabled), { code: 'RATE_LIMIT_EXCEEDED' })
    assert.equal(await keys.lookUp('a', '192.0.2.2', async () => 'enabled again'), 'enabled again')
  })
})

describe('buckets of clients', () => {
  it('buckets of clients name the time until neither the client nor its IPv6 /48 refuses, and a refusal takes nothing', () => {
    const buckets = new ClientBuckets({ perSecond: 1, burst: 8 })
    const take = (subnet: number, count: number) => buckets.take(`2001:4860:1:${subnet}::1`, count)
    const taken = [take(1, 1), take(2, 8), take(3, 8), take(4, 8), take(5, 7)]
    assert.deepEqual(taken, [0, 0, 0, 0, 0])
    // The client has 7 tokens of 8, and its /48 has none of 32, which fills four times as fast.
    for (let count = 0; count < 2; count += 1) {
      const waitMs = take(1, 8)
      assert.ok(waitMs > 1_500 && waitMs <= 2_000, `the /48 has 8 tokens after ${waitMs} ms`)
    }
  })
})
