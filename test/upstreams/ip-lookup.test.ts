import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import ipLookup from '../../src/upstreams/ip-lookup.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const lookup = ipLookup.endpoints['/lookup'] ?? assert.fail()

function interpret(status: number, body: unknown, headers: Record<string, string> = {}) {
  return interpretAnswers({ upstream: ipLookup, endpoint: lookup }, [{ status, headers, body }], {
    parameters: { ip: '8.8.8.8' },
    context: { now: 0 },
  })
}

function classOf(status: number, body: unknown, headers?: Record<string, string>) {
  const result = interpret(status, body, headers)
  return 'responseClass' in result ? result.responseClass : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

function completed(ip: string | undefined, callerAddress?: string): unknown {
  const context = callerAddress === undefined ? { now: 0 } : { now: 0, callerAddress: () => callerAddress }
  return lookup.complete?.(ip === undefined ? {} : { ip }, context).ip
}

const refused = (ip: string | undefined, callerAddress?: string) =>
  assert.throws(
    () => completed(ip, callerAddress),
    (error) => error instanceof InvalidParameter && error.parameter === 'ip',
    `${ip} ${callerAddress}`,
  )

test('the recorded answer maps to the recorded data', () => {
  const { parameters, response, data } = lookup.example
  assert.deepEqual(
    interpretAnswers({ upstream: ipLookup, endpoint: lookup }, [{ status: 200, headers: {}, body: response }], {
      parameters,
      context: { now: 0 },
    }),
    { data },
  )
})

test('the address is a single segment of the path', () => {
  assert.deepEqual(lookup.request({ ip: '155.248.192.115' }, { now: 0 }), { path: '/json/155.248.192.115' })
  assert.deepEqual(lookup.request({ ip: '2001:4860:4860::8888' }, { now: 0 }), {
    path: '/json/2001%3A4860%3A4860%3A%3A8888',
  })
})

test('a request without an address is never built, because it would look up the gateway', () => {
  assert.throws(() => lookup.request({}, { now: 0 }), InvalidParameter)
})

test('without an address the call is about the address from which it came', () => {
  assert.equal(completed(undefined, '155.248.192.115'), '155.248.192.115')
  assert.equal(completed(undefined, '::ffff:155.248.192.115'), '155.248.192.115')
})

test('a call without an address is refused if the caller has no public address', () => {
  for (const address of ['127.0.0.1', '::1', '192.168.0.10', '::ffff:10.0.0.1', 'fe80::1']) refused(undefined, address)
  refused(undefined, undefined)
})

test("a given address wins over the caller's address", () => {
  assert.equal(completed(' 8.8.8.8 ', '155.248.192.115'), '8.8.8.8')
})

test('an IPv6 address is written in one way, however it was given', () => {
  assert.equal(completed('2001:4860:4860:0000:0000:0000:0000:8888'), '2001:4860:4860::8888')
  assert.equal(completed('2606:4700:4700::ABCD'), '2606:4700:4700::abcd')
  assert.equal(completed('2a00:1450:4001:0:0:0:8.8.8.8'), '2a00:1450:4001::808:808')
})

test('an IPv4-mapped address stands for the IPv4 address', () => {
  assert.equal(completed('::ffff:8.8.8.8'), '8.8.8.8')
  assert.equal(completed('::ffff:808:404'), '8.8.4.4')
})

test('domain names, and texts that only resemble an address, are refused before the request', () => {
  for (const ip of [
    'example.com',
    'localhost',
    '8.8.8',
    '8.8.8.8.8',
    '8.8.8.256',
    '08.8.8.8',
    '0x8.8.8.8',
    '134744072',
    '8.8.8.8/24',
    '8.8.8.8:53',
    '1.2.3.-4',
    '...',
    '  ',
  ])
    refused(ip)
  for (const ip of [
    '2001:4860',
    '::',
    ':',
    '2001:4860:::8888',
    '1:2:3:4:5:6:7:8:9',
    '2001:12345::1',
    '[2001:4860::1]',
    'fe80::1%eth0',
    '2001:4860::1/64',
    '2a00::1]@x',
    '2a00::1.2.3',
    'g::1',
  ])
    refused(ip)
})

test('private, loopback, link-local, CGNAT, multicast and reserved IPv4 ranges are refused to their last address', () => {
  const ranges = [
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.1', '127.255.255.255'],
    ['169.254.0.0', '169.254.169.254'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.1', '192.0.2.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '203.0.113.255'],
    ['224.0.0.1', '239.255.255.255'],
    ['240.0.0.0', '255.255.255.255'],
  ]
  for (const address of ranges.flat()) {
    refused(address)
    refused(`::ffff:${address}`)
  }
})

test('the neighbours of refused IPv4 ranges are looked up', () => {
  for (const address of [
    '1.0.0.0',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
  ])
    assert.equal(completed(address), address)
})

test('IPv6 ranges that are not global unicast are refused', () => {
  for (const address of [
    '::1',
    '::8.8.8.8',
    '64:ff9b::8.8.8.8',
    '100::1',
    'fc00::1',
    'fdff::1',
    'fe80::1',
    'fec0::1',
    'ff02::1',
    '2001::1',
    '2001:1ff::1',
    '2001:db8::1',
    '2002:a00:1::1',
    '3fff:fff::1',
    '4000::1',
  ])
    refused(address)
  for (const address of ['2001:200::1', '2003::1', '2400:cb00::1', '3fff:1000::1'])
    assert.equal(completed(address), address)
})

test('a failed lookup answered 200 is no success', () => {
  assert.equal(
    classOf(200, { query: '192.168.0.10', status: 'fail', message: 'private range' }).code,
    'UPSTREAM_REJECTED',
  )
  assert.equal(
    classOf(200, { status: 'fail', message: 'reserved range', query: '127.0.0.1' }).code,
    'UPSTREAM_REJECTED',
  )
  assert.equal(
    classOf(200, { status: 'fail', message: 'invalid query', query: 'zzznotanip' }).code,
    'UPSTREAM_REJECTED',
  )
  assert.equal(classOf(200, { status: 'fail', message: 'something new' }).code, 'UPSTREAM_ERROR')
})

test('the home page, which the upstream sends for an unknown path, is an invalid response', () => {
  assert.equal(classOf(200, undefined).code, 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(classOf(200, {}).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('the refusal of HTTPS without a key is a failure, because no caller chooses HTTPS', () => {
  const body = {
    status: 'fail',
    message: 'SSL unavailable for this endpoint, order a key at https://members.ip-api.com/',
  }
  assert.equal(classOf(403, body).code, 'UPSTREAM_ERROR')
})

test('a 429 closes the cap for the time in X-Ttl', () => {
  const responseClass = classOf(429, undefined, { 'x-rl': '0', 'x-ttl': '17' })
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 17_000)
})

test('a 403 without a reason is a ban, which lasts an hour', () => {
  const responseClass = classOf(403, undefined)
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 3_600_000)
})

test('an empty zip stays empty and a missing member is null', () => {
  const result = interpret(200, { status: 'success', query: '1.1.1.1', zip: '', lat: -27.4766, lon: 153.0166 })
  assert.ok('data' in result)
  assert.equal(result.data.zip, '')
  assert.equal(result.data.lat, -27.4766)
  assert.equal(result.data.isp, null)
})
