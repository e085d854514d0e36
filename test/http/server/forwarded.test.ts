import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Fastify from 'fastify'
import { clientAddress, plainAddress, readForwarded, UNNAMED_CLIENT } from '../../../src/http/server/forwarded.ts'
import { trustProxies } from '../../../src/http/server/trusted-proxies.ts'
import { publicNetworkOf } from '../../../src/throttles/client-network.ts'

const isProxy = trustProxies(['loopback', '10.0.0.0/8', 'fd00::/8'])

const client = (forwarded: string | undefined, remoteAddress: string | undefined = '127.0.0.1'): string =>
  clientAddress({ headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } }, isProxy)

describe('the address of a client', () => {
  const ofIpv4 = ['203.0.113.10', '203.0.113.10:4711', ' 203.0.113.10 ', '"203.0.113.10:4711"', '203.0.113.10:_port1']
  const asIpv6 = ['::ffff:203.0.113.10', '::FFFF:203.0.113.10', '::ffff:cb00:710a', '[::ffff:203.0.113.10]:80']
  const more = [
    '0:0:0:0:0:ffff:203.0.113.10',
    '[203.0.113.10]',
    '[203.0.113.10]:1',
    '203.0.113.10%eth0',
    '203.0.113.10:',
  ]
  for (const written of [...ofIpv4, ...asIpv6, ...more]) {
    it(`the address of a client is 203.0.113.10 when a proxy writes ${written}`, () => {
      assert.equal(plainAddress(written), '203.0.113.10')
      assert.equal(client(written), '203.0.113.10')
      assert.equal(client(`198.51.100.1, ${written}`), '203.0.113.10')
      assert.equal(client(`${written},10.0.0.1:8080, "[fd00::1]:99",[::1]`), '203.0.113.10', 'proxies with ports count')
    })
  }

  const ofIpv6 = ['2001:db8::1', '2001:DB8:0:0::1', '2001:0db8:0000:0000:0000:0000:0000:0001', '[2001:db8::1]']
  const withPort = [
    '[2001:db8::1]:4711',
    '"[2001:db8::1]:4711"',
    '[2001:db8::1]:_x',
    '[2001:db8::1]:',
    '2001:db8:0:0:0:0:0:1:4711',
  ]
  for (const written of [...ofIpv6, ...withPort, '2001:db8::1%eth0', '[2001:db8::1%25eth0]:80']) {
    it(`the address of a client is 2001:db8::1 when a proxy writes ${written}`, () => {
      assert.equal(client(written), '2001:db8::1')
    })
  }

  const names = [
    'unknown',
    'UNKNOWN',
    '_hidden',
    '_SEVKISEK',
    '"_gazonk"',
    'unknown:4711',
    'localhost',
    'example.com:80',
  ]
  for (const written of [...names, '203.0.113', '203.0.113.010', '999.1.1.1', '::1::2', '[]', '-', '1234567890', "'"]) {
    it(`clients that a proxy names ${written} count as one client of a public network`, () => {
      assert.equal(client(written), UNNAMED_CLIENT)
      assert.equal(
        client(`203.0.113.10, ${written}, 10.0.0.1`),
        UNNAMED_CLIENT,
        'what stands before it is not believed',
      )
      assert.equal(client(`${written}, 203.0.113.10`), '203.0.113.10')
      assert.notEqual(publicNetworkOf(client(written)), undefined)
    })
  }

  it('the address of a client is the address of its connection, in plain form, if no trusted proxy wrote another', () => {
    for (const forwarded of [undefined, '203.0.113.10', 'unknown'])
      assert.equal(client(forwarded, '::ffff:198.51.100.7'), '198.51.100.7')
    assert.equal(client(undefined, 'fe80::1%eth0'), 'fe80::1')
    assert.equal(client('203.0.113.10', '::ffff:127.0.0.1'), '203.0.113.10')
    for (const forwarded of ['', ' ', ',', ' , ,']) assert.equal(client(forwarded), '127.0.0.1')
    assert.equal(client('10.1.1.1, 10.2.2.2'), '10.1.1.1', 'the furthest of trusted proxies only')
    assert.equal(clientAddress({ headers: {}, socket: {} }, isProxy), UNNAMED_CLIENT)
  })

  it('every reader of a request sees the plain address, and the host that the client used', async () => {
    const app = Fastify()
    readForwarded(app, isProxy)
    await app.register(async (scope) => {
      scope.get('/', async ({ ip, host, hostname }) => ({ ip, host, hostname }))
    })
    const headers = {
      'x-forwarded-for': '203.0.113.10:4711',
      'x-forwarded-host': 'evil, api.example.com:81',
      host: 'a',
    }
    const seen = async (remoteAddress: string): Promise<unknown> =>
      (await app.inject({ url: '/', headers, remoteAddress })).json()
    const proxied = { ip: '203.0.113.10', host: 'api.example.com:81', hostname: 'api.example.com' }
    assert.deepEqual(await seen('127.0.0.1'), proxied)
    assert.deepEqual(await seen('198.51.100.7'), { ip: '198.51.100.7', host: 'a', hostname: 'a' })
    await app.close()
  })

  it('the address of a client is read once, so that it stays when the connection has ended', async () => {
    const app = Fastify()
    readForwarded(app, isProxy)
    app.get('/', async (request) => {
      const before = request.ip
      Object.defineProperty(request.raw, 'socket', { value: {} })
      return [before, request.ip]
    })
    const seen = await app.inject({ url: '/', remoteAddress: '198.51.100.7' })
    assert.deepEqual(seen.json(), ['198.51.100.7', '198.51.100.7'])
    await app.close()
  })
})
