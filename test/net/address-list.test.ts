import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { it } from 'node:test'
import { AddressList, normalizedNetwork } from '../../src/net/address-list.ts'
import { fc, propertyRuns } from '../support/property.ts'

it('an address and a network have one spelling, without host bits', () => {
  for (const [written, normalized] of [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7/32', '203.0.113.7'],
    ['203.0.113.7/24', '203.0.113.0/24'],
    ['255.255.255.255/0', '0.0.0.0/0'],
    ['2001:DB8:0:0::7', '2001:db8::7'],
    ['2001:db8::7/128', '2001:db8::7'],
    ['2001:db8:ffff::7/32', '2001:db8::/32'],
    ['2001:db8::7/121', '2001:db8::/121'],
    ['::/0', '::/0'],
    ['::1', '::1'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107/128', '203.0.113.7'],
    ['::ffff:203.0.113.7/120', '203.0.113.0/24'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['64:ff9b::203.0.113.7', '64:ff9b::cb00:7107'],
  ] as const)
    assert.equal(normalizedNetwork(written), normalized, written)
})

it('a text that is not an address or a network, or is valid only on one machine, is refused', () => {
  for (const written of [
    ...[
      '',
      ' ',
      '203.0.113',
      '203.0.113.300',
      '0203.0.113.7',
      '0x7f.0.0.1',
      '2130706433',
      'localhost',
      'example.com',
      '*',
    ],
    ...['203.0.113.0/33', '203.0.113.0/-1', '203.0.113.0/', '203.0.113.0/024', '203.0.113.0/ 24', '203.0.113.0/24/8'],
    ...['203.0.113.0/255.255.255.0', '203.0.113.1-203.0.113.9', '203.0.113.7:80', '[2001:db8::7]', '[2001:db8::7]:443'],
    ...['2001:db8::/129', '2001:db8::/1e2', '2001::db8::7', 'fe80::1%eth0', 'fe80::1%eth0/64', '::ffff:203.0.113.7%1'],
    // It holds more than IPv4 addresses, and no IPv4 address comes in this form.
    ...['::ffff:203.0.113.7/95', '::ffff:0:0/0'],
    ...[' 203.0.113.7', '203.0.113.7\n', '203.0.113.7,203.0.113.8', '２０３.0.113.7'],
  ])
    assert.equal(normalizedNetwork(written), undefined, written)
})

it('a list has the addresses of its networks and no others, each family by itself', () => {
  const list = new AddressList(['203.0.113.0/24', '198.51.100.7/32', '2001:db8::/32', '::1/128'])
  for (const address of ['203.0.113.0', '203.0.113.255', '198.51.100.7', '2001:db8::1', '2001:db8:ffff::', '::1']) {
    // The second time it is remembered.
    for (const _ of [1, 2]) assert.equal(list.has(address), true, address)
  }
  for (const address of [
    '203.0.112.255',
    '203.0.114.0',
    '198.51.100.6',
    '2001:db9::',
    '::2',
    '192.0.0.8',
    'unknown',
    '',
  ])
    assert.equal(list.has(address), false, address)
  assert.deepEqual(
    [new AddressList(['0.0.0.0/0']).has('::1'), new AddressList(['::/0']).has('127.0.0.1')],
    [false, false],
  )
  assert.ok(new AddressList(['0.0.0.0/0']).has('192.0.0.8'))
})

it('a list goes on to decide by its networks when it has met more addresses than it remembers', () => {
  const list = new AddressList(['10.0.0.0/16'])
  for (let number = 0; number < 1_000; number += 1) {
    assert.ok(list.has(`10.0.${number >> 8}.${number & 255}`))
    assert.ok(!list.has(`10.1.${number >> 8}.${number & 255}`))
  }
})

it('each network that is taken has a spelling that stays as it is, and holds the address it was written with', async () => {
  const length = fc.option(
    fc.integer({ min: 0, max: 128 }).map((bits) => `/${bits}`),
    { nil: '' },
  )
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((ipv4) => `::ffff:${ipv4}`),
  )
  await fc.assert(
    fc.asyncProperty(address, length, async (written, bits) => {
      const normalized = normalizedNetwork(written + bits)
      assert.ok(isIP(written) !== 0)
      if (normalized === undefined) return
      assert.equal(normalizedNetwork(normalized), normalized)
      assert.ok(new AddressList([normalized]).has(written))
    }),
    propertyRuns(500),
  )
})
