import assert from 'node:assert/strict'
import { it } from 'node:test'
import { publicNetworkOf } from '../../src/limits/client-network.ts'

it('the network of a public address is the address, or the /56 of an IPv6 one; others have none', () => {
  assert.equal(publicNetworkOf('198.51.100.7'), '198.51.100.7')
  assert.equal(publicNetworkOf('::ffff:198.51.100.7'), '198.51.100.7')
  assert.equal(publicNetworkOf('2001:4860:1:2ff::1'), publicNetworkOf('2001:4860:1:200::9'))
  assert.notEqual(publicNetworkOf('2001:4860:1:300::1'), publicNetworkOf('2001:4860:1:200::1'))
  for (const own of ['127.0.0.1', '::1', '10.1.2.3', '192.168.0.9', '172.16.0.1', 'fe80::1', 'fd00::1', 'nonsense']) {
    assert.equal(publicNetworkOf(own), undefined, own)
  }
})
