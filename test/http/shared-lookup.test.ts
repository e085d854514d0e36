import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { test } from 'node:test'
import { shareLookups } from '../../src/http/shared-lookup.ts'

const ADDRESSES: LookupAddress[] = [
  { address: '2001:db8::1', family: 6 },
  { address: '192.0.2.1', family: 4 },
]

function ask(lookup: LookupFunction, hostname: string, options: Parameters<LookupFunction>[1]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    lookup(hostname, options, (error, address, family) =>
      error ? reject(error) : resolve(family ? [address, family] : address),
    )
  })
}

test('a name is looked up once for all that want it while its servers are silent, and other names beside it', async () => {
  const asked: string[] = []
  const silent = Promise.withResolvers<LookupAddress[]>()
  const lookup = shareLookups(async (hostname) => {
    asked.push(hostname)
    return hostname === 'silent.example' ? await silent.promise : ADDRESSES
  })
  const waiting = Array.from({ length: 10 }, () => ask(lookup, 'silent.example', { all: true }))
  assert.deepEqual(await ask(lookup, 'other.example', { all: true }), ADDRESSES)
  assert.deepEqual(asked, ['silent.example', 'other.example'])
  silent.reject(new Error('EAI_AGAIN'))
  for (const each of waiting) await assert.rejects(each, /EAI_AGAIN/)
  await ask(lookup, 'other.example', {})
  assert.equal(asked.length, 3, 'nothing is kept')
})

test('a name that is looked up together has its addresses in the form that each wants', async () => {
  const lookup = shareLookups(async () => ADDRESSES)
  const [all, one] = await Promise.all([ask(lookup, 'a.example', { all: true }), ask(lookup, 'a.example', {})])
  assert.deepEqual(all, ADDRESSES)
  assert.deepEqual(one, ['2001:db8::1', 6])
})
