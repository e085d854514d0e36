import assert from 'node:assert/strict'
import type { LookupOptions } from 'node:dns'
import { lookup as systemLookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { before, test } from 'node:test'
import { lookup } from '../../src/net/lookup.ts'
import { NamedSocket } from '../../src/net/named-socket.ts'
import { type NameServer, useTestNames } from '../support/name-server.ts'

const BOTH = [
  { address: '192.0.2.1', family: 4 },
  { address: '2001:db8::1', family: 6 },
]

let server: NameServer
before(async () => {
  server = await useTestNames({
    'both.example': BOTH.map(({ address }) => address),
    'lookup.example': ['127.0.0.1'],
    localhost: ['192.0.2.66'],
    'many.example': Array.from({ length: 25 }, (_, index) => `192.0.2.${index}`),
    'many-of-both.example': Array.from({ length: 12 }, (_, index) => [`192.0.2.${index}`, `2001:db8::${index}`]).flat(),
  })
})

function find(hostname: string, options: LookupOptions = { all: true }): Promise<unknown> {
  return new Promise((resolve, reject) => {
    lookup(hostname, options, (error, address, family) =>
      error ? reject(error) : resolve(family ? { address, family } : address),
    )
  })
}

test('forty names whose name servers are silent delay no other name and block no thread of the process, and their look-ups end', async () => {
  let ended = 0
  const silent = Array.from({ length: 40 }, (_, index) =>
    assert.rejects(
      find(`slow-${index}.example`).finally(() => (ended += 1)),
      { code: 'EAI_AGAIN', hostname: `slow-${index}.example` },
    ),
  )
  assert.deepEqual(await find('both.example'), BOTH)
  await systemLookup('localhost')
  assert.equal(ended, 0)
  await Promise.all(silent)
})

test('a name has its addresses in the form and of the family that each connection wants', async () => {
  const [all, one, six] = await Promise.all([
    find('both.example'),
    find('both.example', {}),
    find('both.example', { family: 6 }),
  ])
  assert.deepEqual(all, BOTH)
  assert.deepEqual(one, BOTH[0])
  assert.deepEqual(six, BOTH[1])
  await assert.rejects(find('lookup.example', { family: 6 }), { code: 'ENOTFOUND' })
})

test('a name leads a connection to four addresses of each family at most, however many addresses its owner writes', async () => {
  for (const [name, count] of [
    ['many.example', 4],
    ['many-of-both.example', 8],
  ] as const) {
    const found = await find(name)
    assert.equal(Array.isArray(found) ? found.length : 0, count, name)
  }
})

test('connections that look up a name at the same time share its DNS queries', async () => {
  const asked = () => server.asked.filter((name) => name === 'lookup.example').length
  const before = asked()
  await Promise.all(Array.from({ length: 20 }, () => find('lookup.example')))
  assert.equal(asked(), before + 2)
  await find('lookup.example')
  assert.equal(asked(), before + 4, 'nothing is kept')
})

test('a name that does not exist is distinguished from a name for which no name server answers', async () => {
  await assert.rejects(find('nobody.example'), { code: 'ENOTFOUND' })
  await assert.rejects(find('a..b'), { code: 'ENOTFOUND' })
  await assert.rejects(find('broken.example'), { code: 'EAI_AGAIN' })
})

test('names of this machine and IP addresses cause no query to a name server', async () => {
  for (const name of ['localhost', 'LOCALHOST.', 'app.localhost'])
    assert.deepEqual(await find(name, { family: 4 }), { address: '127.0.0.1', family: 4 })
  assert.deepEqual(await find('::1', {}), { address: '::1', family: 6 })
  assert.ok(!server.asked.some((name) => /localhost|::1/.test(name)))
})

test('a socket for libraries that connect by port and host finds the host by the same look-up', async () => {
  const listener = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  for (const host of ['lookup.example', '127.0.0.1', 'localhost']) {
    const socket = new NamedSocket()
    socket.connect(port, host)
    await once(socket, 'connect')
    socket.destroy()
  }
  listener.close()
})
