import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { challengeFor, isResource, mcpAddress, requireAudience, resourceOf } from '../../src/oauth/resources.ts'

const BASE = 'http://gateway.example:3000'

/** Addresses under which the MCP routes serve a client, and the resource that each of them is. */
const SPELLINGS: [address: string, resource: string][] = [
  ['/mcp', '/mcp'],
  ['/mcp/', '/mcp'],
  ['/mcp?apis=weather,currency', '/mcp'],
  ['/mcp/?apis=weather', '/mcp'],
  ['/mcp?', '/mcp'],
  ['/%6dcp', '/mcp'],
  ['/%6Dc%70/', '/mcp'],
  ['/./mcp', '/mcp'],
  ['/mcp/.', '/mcp'],
  ['/v1/../mcp', '/mcp'],
  ['/mcp/%2e%2E/mcp', '/mcp'],
  ['/mcp/weather', '/mcp/weather'],
  ['/mcp/weather/', '/mcp/weather'],
  ['/mcp/%77eather?x=%2F', '/mcp/weather'],
  ['/mcp/dog%2Dimages', '/mcp/dog-images'],
  ['/mcp/currency/../weather/', '/mcp/weather'],
]

const OTHERS = [
  '/mcpx',
  '/MCP',
  '/mcp/weather/x',
  '/mcp//',
  '//mcp',
  '/v1/mcp',
  '/mcp/..',
  '/%256dcp',
  '/mcp%2fweather',
  '/x?/mcp',
]

describe('an address of a resource', () => {
  it('an address of a resource in each spelling that is served means the same resource in routing, sign-in, challenge and audience', () => {
    for (const [address, path] of SPELLINGS) {
      const query = address.includes('?') ? address.slice(address.indexOf('?')) : ''
      assert.equal(mcpAddress(address), path + query, address)
      assert.equal(resourceOf(BASE + address, BASE), BASE + path, address)
      const request = { url: mcpAddress(address) ?? '', originalUrl: address }
      requireAudience({ resource: BASE + path }, request, BASE)
      const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(challengeFor(request, 'Bearer', BASE)) ?? []
      const named = metadata.replace('/.well-known/oauth-protected-resource', '')
      assert.equal(named, new URL(BASE + address).href.replace(/[?]$/, ''), address)
    }
  })

  it('an address of a resource is compared as the standard of addresses says: letters of scheme and host, and the default port, make no other resource', () => {
    const spelled: [base: string, address: string, resource: string][] = [
      [BASE, 'HTTP://Gateway.EXAMPLE:3000/mcp', '/mcp'],
      [BASE, BASE, ''],
      [BASE, `${BASE}/`, ''],
      [BASE, `${BASE}/.`, ''],
      ['https://gateway.example', 'https://gateway.example:443/mcp/weather/', '/mcp/weather'],
      ['https://gateway.example:443', 'https://gateway.example/mcp', '/mcp'],
      ['HTTPS://Gateway.example', 'https://gateway.example/mcp', '/mcp'],
      ['http://gateway.example', 'http://gateway.example:80', ''],
      ['https://bücher.example', 'https://xn--bcher-kva.example/mcp', '/mcp'],
    ]
    for (const [base, address, path] of spelled) assert.equal(resourceOf(address, base), base + path, address)
  })

  it('an address names no resource if it has another host, scheme or port, a user, a fragment, or a path that is not served', () => {
    const foreign = [
      'https://gateway.example:3000/mcp',
      'http://gateway.example/mcp',
      'http://gateway.example.:3000/mcp',
      'http://evil.example:3000/mcp',
      'http://user@gateway.example:3000/mcp',
      'http://:secret@gateway.example:3000/mcp',
      `${BASE}/mcp#`,
      `${BASE}/mcp#fragment`,
      `${BASE}\\mcp`,
      `${BASE}/m\tcp`,
      ` ${BASE}/mcp`,
      `${BASE}?apis=weather`,
      `${BASE}/?apis=weather`,
      `${BASE}.evil.example/mcp`,
      '/mcp',
      'mcp',
      '',
    ]
    for (const address of foreign) assert.equal(resourceOf(address, BASE), undefined, address)
    // If an address leads to the root, its resource is the call routes.
    for (const path of OTHERS) assert.equal(resourceOf(BASE + path, BASE), path === '/mcp/..' ? BASE : undefined, path)
  })

  it('an address of a resource that is not served is routed as it is', () => {
    for (const path of [...OTHERS, '/', '/v1/call/weather/current?x=/mcp', '/v1/call/encyclopedia/summary?title=%6dcp'])
      assert.equal(mcpAddress(path), undefined, path)
  })

  it('an address of a resource names an API of the catalog', async () => {
    const catalog = await loadCatalog(new Map())
    const known = ['', '/mcp', '/mcp/weather'].map((path) => isResource(BASE + path, BASE, catalog))
    const unknown = ['/', '/mcp/', '/mcp/nothing', '/mcp/Weather'].map((path) => isResource(BASE + path, BASE, catalog))
    assert.deepEqual([known, unknown], [known.map(() => true), unknown.map(() => false)])
  })

  it('an address of a resource with a quotation mark does not break the header of the challenge', () => {
    const request = { url: '/mcp?apis="x', originalUrl: '/mcp?apis="x' }
    assert.match(challengeFor(request, 'Bearer', BASE), /resource_metadata="[^"]+\/mcp\?apis=%22x", scope="call"$/)
  })
})
