import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  clientOf,
  clientsAround,
  networksAround,
  publicNetworkOf,
  subscriberOf,
} from '../../src/throttles/client-network.ts'

it('the network of a public address is the address, or the /64 of an IPv6 one; others have none', () => {
  assert.equal(publicNetworkOf('198.51.100.7'), '198.51.100.7')
  assert.equal(publicNetworkOf('2001:4860:1:2ff::1'), '32.1.72.96.0.1.2.255/64')
  assert.equal(publicNetworkOf('2001:4860:1:2ff::1'), publicNetworkOf('2001:4860:1:2ff:ffff::9'))
  for (const own of ['127.0.0.1', '::1', '10.1.2.3', '192.168.0.9', '172.16.0.1', 'fe80::1', 'fd00::1', 'nonsense']) {
    assert.equal(publicNetworkOf(own), undefined, own)
  }
})

it('an IPv6 address that embeds a public IPv4 address has the network of that address, and an embedded private address counts as public', () => {
  const same = [
    '::ffff:198.51.100.7',
    '::ffff:0:198.51.100.7',
    '64:ff9b::c633:6407',
    '2002:c633:6407:1::1',
    '2001:0:4136:e378:8000:63bf:39cc:9bf8',
  ]
  for (const address of same) assert.equal(publicNetworkOf(address), '198.51.100.7', address)
  for (const address of ['64:ff9b::10.0.0.1', '2002:a00:1::1', '2002:7f00:1::1', '64:ff9b:1::c633:6407']) {
    assert.match(publicNetworkOf(address) ?? '', /\/64$/, address)
  }
  assert.equal(publicNetworkOf('::ffff:10.0.0.1'), undefined)
})

it('the networks around a network are the widest first, and tell IPv4 from IPv6', () => {
  const namesAround = (network: string) => networksAround(network).map(({ name }) => name)
  assert.deepEqual(namesAround('198.51.100.7'), ['ipv4:198.51.100/24', 'ipv4:198.51.100.7/32'])
  assert.deepEqual(namesAround('32.1.72.96.0.1.2.255/64'), [
    'ipv6:32.1.72.96/32',
    'ipv6:32.1.72.96.0.1/48',
    'ipv6:32.1.72.96.0.1.2/56',
    'ipv6:32.1.72.96.0.1.2.255/64',
  ])
  assert.deepEqual(namesAround('32.1.72.96.0.1.2/56'), namesAround('32.1.72.96.0.1.2.255/64').slice(0, 3))
})

it('a client is an IPv4 address in any spelling or an IPv6 /64, and the network that one stranger may own is an IPv4 address or an IPv6 /48', () => {
  for (const address of ['198.51.100.7', '::ffff:198.51.100.7', '2002:c633:6407:1::1', '2002:c633:6407:2::1']) {
    assert.equal(clientOf(address), '198.51.100.7', address)
    assert.equal(subscriberOf(address), '198.51.100.7', address)
  }
  const clients = ['2001:4860:1:2ff::1', '2001:4860:1:300::1', '2001:4860:1:2ff::2']
  assert.equal(new Set(clients.map(clientOf)).size, 2)
  assert.equal(new Set(clients.map(subscriberOf)).size, 1)
  assert.notEqual(subscriberOf('2001:4860:2:300::1'), subscriberOf('2001:4860:1:300::1'))
})

it('all clients of a public IPv6 /48 together have the limits of four clients, and each client of a private network has its own', () => {
  const sizes = (address: string) => clientsAround(address).map(({ clients }) => clients)
  assert.deepEqual(sizes('2001:4860:1:2ff::1'), [1, 4])
  for (const address of ['198.51.100.7', 'fd00:1:2:3::1', '::1', '2002:c633:6407:1::1', 'nonsense'])
    assert.deepEqual(sizes(address), [1], address)
})
