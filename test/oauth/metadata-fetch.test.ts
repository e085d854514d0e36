import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { lookup } from '../../src/net/lookup.ts'
import { openMetadataFetch } from '../../src/oauth/metadata-fetch.ts'
import { useTestNames } from '../support/name-server.ts'

before(async () => {
  await useTestNames({ 'documents-store.example': ['127.0.0.1'], 'private.example': ['127.0.0.1'] })
})

const documentOf = (name: string): string => `https://${name}/client.json`

test('a node fetches 16 documents at once, and one for each client address', () => {
  const { begin } = openMetadataFetch()
  const end = begin(documentOf('a.example'), '192.0.2.1') ?? assert.fail()
  assert.equal(begin(documentOf('b.example'), '192.0.2.1'), undefined, 'a second document of the same client')
  const endShared = begin(documentOf('a.example'), '192.0.2.1') ?? assert.fail('it shares the fetch')
  const ends = Array.from({ length: 15 }, (_, index) => begin(documentOf(`b${index}.example`), `192.0.2.${2 + index}`))
  assert.ok(!ends.includes(undefined), 'slow documents of few clients leave places for others')
  assert.equal(begin(documentOf('c.example'), '192.0.2.99'), undefined, 'one more')
  endShared()
  assert.equal(begin(documentOf('c.example'), '192.0.2.99'), undefined, 'who shared a fetch has not ended it')
  end()
  const endThird = begin(documentOf('c.example'), '192.0.2.99') ?? assert.fail()
  for (const each of [...ends, endThird]) each?.()
  assert.ok(begin(documentOf('b.example'), '192.0.2.1'))
})

test('a document on a host whose name servers are silent fails, and the host is not tried again for a minute', async () => {
  const { begin, fetch } = openMetadataFetch()
  const url = documentOf('slow-1.attacker.example')
  await assert.rejects(fetch(url))
  assert.equal(begin(url, '192.0.2.1'), undefined)
  assert.equal(begin('https://slow-1.attacker.example/other.json', '192.0.2.2'), undefined)
  assert.ok(begin(documentOf('slow-2.attacker.example'), '192.0.2.1'))
})

test('a document on a host that has only a private address, or none, is not fetched, and the host is not tried again', async () => {
  const { begin, fetch } = openMetadataFetch()
  for (const name of ['private.example', 'nobody.example', '127.0.0.1', '[::ffff:127.0.0.1]']) {
    await assert.rejects(fetch(documentOf(name)), name)
    assert.equal(begin(documentOf(name), '192.0.2.1'), undefined, name)
  }
})

test('while documents of silent hosts are fetched, look-ups of the names of stores still succeed', async () => {
  const { fetch } = openMetadataFetch()
  let ended = 0
  const fetches = Array.from({ length: 20 }, (_, index) =>
    assert.rejects(fetch(documentOf(`slow-store-${index}.attacker.example`)).finally(() => (ended += 1))),
  )
  const found = Promise.withResolvers<unknown>()
  lookup('documents-store.example', {}, (error, address) => found.resolve(error ?? address))
  assert.equal(await found.promise, '127.0.0.1')
  assert.equal(ended, 0)
  await Promise.all(fetches)
})

test('a fetch that its caller aborts does not count as a failure of the host', async () => {
  const { begin, fetch } = openMetadataFetch()
  const url = documentOf('slow-3.attacker.example')
  await assert.rejects(fetch(url, { signal: AbortSignal.timeout(50) }))
  assert.ok(begin(url, '192.0.2.1'))
})
