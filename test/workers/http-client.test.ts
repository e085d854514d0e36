import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { constants, createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setDefaultCACertificates } from 'node:tls'
import { applySettings, loadCatalog, withCallerKey } from '../../src/catalog/catalog.ts'
import { BlockedAddressError, openHttpClient } from '../../src/net/http-client.ts'
import { isPublicAddress } from '../../src/net/reachable.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { HttpClients } from '../../workers/upstream/http-client.ts'
import { makeCertificate } from '../support/certificate.ts'
import { until } from '../support/gateway.ts'

/** Addresses to which no upstream may lead, by kind. */
const PRIVATE: Record<string, string[]> = {
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  loopback: [
    '127.0.0.1',
    '127.255.255.254',
    '::1',
    '0:0:0:0:0:0:0:1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
  ],
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  'shared (CGNAT)': ['100.64.0.1', '100.127.255.255'],
  'link-local': ['169.254.0.1', '169.254.169.254', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
  'unique local': ['fc00::1', 'fd00:ec2::254', 'fdff:ffff::1'],
  'site-local, deprecated': ['fec0::1', 'feff::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  'protocol assignments': ['192.0.0.1', '192.0.0.170'],
  '6to4 relay': ['192.88.99.1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  'reserved and broadcast': ['240.0.0.1', '255.255.255.254', '255.255.255.255'],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::ffff:169.254.169.254', '::ffff:0:0'],
  'IPv4-compatible': ['::127.0.0.1', '::10.0.0.1', '::7f00:1'],
  'IPv4-translated': ['::ffff:0:127.0.0.1', '::ffff:0:a00:1'],
  NAT64: ['64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '64:ff9b:1:ffff::10.0.0.1'],
  '6to4': ['2002:7f00:1::', '2002:a00:1::1', '2002:c0a8:1::1', '2002:808:808::1'],
  Teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ORCHID: ['2001:10::1', '2001:20::1'],
  'discard only': ['100::1', '100:0:0:1::1'],
  SRv6: ['5f00::1'],
  unassigned: ['4000::1', '8000::1', 'c000::1', 'e000::1', '1::1', '200::1'],
  'no address': ['', 'localhost', 'example.com', '1.2.3', '1.2.3.4.5', '[::1]', '127.0.0.1:80', '::g', ' 8.8.8.8'],
}

const PUBLIC = ['8.8.8.8', '1.1.1.1', '93.184.216.34', '172.15.255.255', '172.32.0.1', '100.63.255.255', '100.128.0.1']
const PUBLIC_6 = ['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:80b::200e', '::ffff:8.8.8.8']

describe('an address', () => {
  assert.ok(Object.values(PRIVATE).flat().length >= 60)
  for (const [kind, addresses] of Object.entries(PRIVATE)) {
    it(`an address that is ${kind} is not public`, () => {
      for (const address of addresses) assert.equal(isPublicAddress(address), false, address)
    })
  }
  it('an address of the public Internet is public', () => {
    for (const address of [...PUBLIC, ...PUBLIC_6]) assert.equal(isPublicAddress(address), true, address)
  })
})

describe('a connection to an upstream', () => {
  let server: Server
  let port: number
  let arrivals = 0
  before(async () => {
    server = createServer((_request, response) => {
      arrivals += 1
      response.end('{}')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  async function ask(host: string, allowPrivate: boolean): Promise<number> {
    const client = openHttpClient({ connections: 1, allowPrivate })
    try {
      const { statusCode, body } = await client.request({ origin: `http://${host}:${port}`, path: '/', method: 'GET' })
      await body.dump()
      return statusCode
    } finally {
      await client.destroy()
    }
  }

  // Names of the system's own resolver and literals, in the spellings that the URL parser accepts.
  for (const host of [
    'localhost',
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '0.0.0.0',
    '[::ffff:127.0.0.1]',
    '[::1]',
  ]) {
    it(`a connection to an upstream is not made to ${host} unless the operator chose the address`, async () => {
      arrivals = 0
      await assert.rejects(
        ask(host, false),
        (error) => error instanceof BlockedAddressError && error.code === 'BLOCKED_ADDRESS',
      )
      assert.equal(arrivals, 0)
    })
  }

  it('a connection to an upstream is made to a private address that the operator chose', async () => {
    assert.equal(await ask('localhost', true), 200)
    assert.equal(await ask('127.0.0.1', true), 200)
  })

  it('a connection to an upstream speaks HTTP/1.1 even if HTTP/2 is offered, so no request is sent twice under one permit', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'http-client-'))
    const { certFile, keyFile } = await makeCertificate(folder, 'upstream')
    const cert = await readFile(certFile, 'utf8')
    setDefaultCACertificates([cert])
    const versions: string[] = []
    // The server refuses each request, either by its stream or by closing the connection.
    const secure = createSecureServer({ cert, key: await readFile(keyFile), allowHTTP1: true }, (request) => {
      versions.push(request.httpVersion)
      if (request.httpVersion === '2.0') request.stream.close(constants.NGHTTP2_REFUSED_STREAM)
      else request.destroy()
    })
    secure.listen(0, '127.0.0.1')
    await once(secure, 'listening')
    const client = openHttpClient({ connections: 1, allowPrivate: true })
    try {
      const origin = `https://localhost:${(secure.address() as AddressInfo).port}`
      await assert.rejects(client.request({ origin, path: '/', method: 'GET' }))
      assert.deepEqual(versions, ['1.1'])
    } finally {
      await client.destroy()
      secure.close()
      await rm(folder, { recursive: true })
    }
  })

  it("a connection to an upstream is there for a caller's key although requests with other keys, or with none, take all of theirs", async () => {
    const held: ServerResponse[] = []
    const slow = createServer((request, response) =>
      request.url === '/slow' ? held.push(response) : response.end('{}'),
    )
    slow.listen(0, '127.0.0.1')
    await once(slow, 'listening')
    const origin = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
    const api =
      (await loadCatalog(new Map([['code-host-user', { url: origin }]]))).get('code-host-user') ?? assert.fail()
    applySettings(api, { caps: { concurrency: 1 } })
    const clients = new HttpClients()
    const get = async (place: string, bucket: string) => {
      const client = clients.of(bucket === SHARED_BUCKET ? api : withCallerKey(api), bucket)
      const { statusCode, body } = await client.request({ origin, path: place, method: 'GET' })
      await body.dump()
      return statusCode
    }
    const under = Promise.allSettled([get('/slow', 'key-of-one'), get('/slow', SHARED_BUCKET)])
    try {
      await until(() => held.length === 2, 5_000)
      assert.equal(await get('/', 'key-of-another'), 200)
    } finally {
      await Promise.all([...clients.of.made.values()].map((client) => client.destroy()))
      await under
      slow.closeAllConnections()
      slow.close()
    }
  })

  it('a connection to an upstream belongs to a single API: an API at the same address may be refused, and does not wait for its requests', async () => {
    const held: ServerResponse[] = []
    const shared = createServer((request, response) =>
      request.url === '/slow' ? held.push(response) : response.end('{}'),
    )
    shared.listen(0, '127.0.0.1')
    await once(shared, 'listening')
    const origin = `http://127.0.0.1:${(shared.address() as AddressInfo).port}`
    const api = (await loadCatalog(new Map([['weather', { url: origin }]]))).get('weather') ?? assert.fail()
    applySettings(api, { caps: { concurrency: 1 } })
    const beside = { ...api, slug: 'beside' }
    // The document of this API names the address, and no operator has allowed it.
    const guarded = { ...api, slug: 'guarded', isBaseUrlConfigured: false }
    const clients = new HttpClients()
    const get = async (of: typeof api, place: string, bucket = SHARED_BUCKET) => {
      const { statusCode, body } = await clients.of(of, bucket).request({ origin, path: place, method: 'GET' })
      await body.dump()
      return statusCode
    }
    const under = get(api, '/slow')
    try {
      await until(() => held.length === 1, 5_000)
      assert.equal(await get(beside, '/'), 200)
      assert.equal(await get(api, '/', 'key of a caller'), 200)
      for (const bucket of [SHARED_BUCKET, 'key of a caller'])
        await assert.rejects(get(guarded, '/', bucket), { code: 'BLOCKED_ADDRESS' })
    } finally {
      await Promise.all([...clients.of.made.values()].map((client) => client.destroy()))
      await Promise.allSettled([under])
      shared.closeAllConnections()
      shared.close()
    }
  })
})
