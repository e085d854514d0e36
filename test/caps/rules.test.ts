import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Caps } from '../../src/catalog/upstream.ts'
import { redisOfThisFile } from '../support/services.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()

/**
 * How many calls a cap accepts from one group of accounts, a new account each time, after another
 * account had a permit.
 */
async function countTaken(rates: Caps['rates'], callsMax: number): Promise<number> {
  const world = await new World(redis, { concurrency: 200, rates }).open()
  const call = { weight: 1, isAsync: false, timeoutMs: 30_000 }
  await world.join({ ...call, account: 'other' })
  await world.advance(0)
  for (let taken = 0; taken < callsMax; taken += 1) {
    const refusal = await world.join({ ...call, account: `account-${taken}`, group: 'network' })
    if (refusal) {
      assert.equal(refusal.reason, 'share')
      return taken
    }
    await world.advance(0)
  }
  return callsMax
}

it('a rate of a hundred requests is scarce, of which a group of accounts has half; one of a hundred and one is not', async () => {
  assert.equal(await countTaken([{ max: 100, seconds: 60 }], 60), 50)
  assert.equal(await countTaken([{ max: 101, seconds: 60 }], 60), 60)
})

it('a group of accounts has half of a scarce rate whatever other rates the cap has', async () => {
  const scarce = { max: 10, seconds: 60 }
  const wide = { max: 1_000, seconds: 1 }
  for (const rates of [[scarce], [scarce, wide], [wide, scarce]]) assert.equal(await countTaken(rates, 10), 5)
})

it('a rate of an odd number of requests gives a share the smaller half', async () => {
  assert.equal(await countTaken([{ max: 11, seconds: 60 }], 10), 5)
  assert.equal(await countTaken([{ max: 3, seconds: 60 }], 10), 1)
})

it('the permits that an account got before an operator made the cap scarce count for its share', async () => {
  const rules = { concurrency: 200, rates: [{ max: 200, seconds: 3_600 }] }
  const world = await new World(redis, rules).open()
  const call = { weight: 1, isAsync: false, timeoutMs: 30_000 }
  for (let number = 0; number < 45; number += 1) await world.join({ ...call, account: 'busy' })
  await world.join({ ...call, account: 'other' })
  await world.advance(0)
  rules.rates = [{ max: 90, seconds: 3_600 }]
  await world.join({ ...call, account: 'other' })
  assert.equal((await world.join({ ...call, account: 'busy' }))?.reason, 'share')
})
