/**
 * How the files of src/upstreams are written: the same order in all, each field of the data and
 * each parameter said once, and recorded answers in a file beside them.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

const SRC = new URL('../../src/', import.meta.url)
const files = readdirSync(new URL('upstreams/', SRC))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(new URL(`upstreams/${name}`, SRC), 'utf8') }))

const contract = ['upstream', 'endpoint']
  .map((name) => readFileSync(new URL(`catalog/${name}.ts`, SRC), 'utf8'))
  .join('\n')

const recordings = new URL('upstreams/recordings/', SRC)

/** Kinds of statements, in the order in which they stand in a file. */
const KINDS = ['import', 'constant', 'upstream', 'function']

function kindOf(line: string): string {
  if (line.startsWith('export default upstream(')) return 'upstream'
  const [word = ''] = line.split(' ', 1)
  return ['const', 'type', 'interface'].includes(word) ? 'constant' : word
}

/** Members of an interface of the contract, in the order in which they are documented. */
function documentedMembers(name: string): string[] {
  const [, body = ''] = new RegExp(`^export interface ${name}\\b.* \\{\\n([^]*?)^\\}`, 'm').exec(contract) ?? []
  const members = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member = '']) => member)
  assert.ok(members.length > 5, name)
  return members
}

/**
 * The upstream's own members, and the members of each endpoint, also of the endpoints of a second
 * source.
 */
function membersOf(text: string): { upstream: string[]; endpoints: string[][] } {
  const [, declaration = ''] = text.split(/^export default upstream\(/m)
  const [head = ''] = declaration.split(/^ {2}endpoints: /m)
  const endpoints = text.matchAll(/^ {4}'\/.*endpoint\(([\s\S]*?)^ {4}\}\),$/gm)
  const namesIn = (part: string, indent: number): string[] =>
    [...part.matchAll(new RegExp(`^ {${indent}}(\\w+)[:,]`, 'gm'))].map(([, name = '']) => name)
  return { upstream: namesIn(head, 2), endpoints: [...endpoints].map(([, part = '']) => namesIn(part, 6)) }
}

const inOrder = (names: string[], order: string[]): string[] =>
  names.toSorted((one, other) => order.indexOf(one) - order.indexOf(other))

describe('an upstream file', () => {
  it('an upstream file is seen by these checks, and so are its endpoints', () => {
    assert.ok(files.length >= 28)
    const endpoints = files.flatMap(({ text }) => membersOf(text).endpoints)
    assert.equal(endpoints.length, files.flatMap(({ text }) => text.match(/\bendpoint\(/g) ?? []).length)
  })

  it('an upstream file has its imports first, then constants, the upstream, and functions last', () => {
    for (const { name, text } of files) {
      const lines = text.match(/^(?:import|const|type|interface|export|function) .*$/gm) ?? []
      const kinds = lines.map(kindOf)
      assert.deepEqual(kinds, inOrder(kinds, KINDS), name)
      assert.equal(kinds.filter((kind) => kind === 'upstream').length, 1, name)
    }
  })

  it('an upstream file has its members, and the members of its endpoints, in the order in which upstream.ts and endpoint.ts document them', () => {
    const ofUpstream = documentedMembers('Upstream')
    // A file says where the data are read from in place of how they are mapped.
    const ofEndpoint = documentedMembers('Endpoint').map((member) => (member === 'map' ? 'readFrom' : member))
    for (const { name, text } of files) {
      const { upstream, endpoints } = membersOf(text)
      assert.deepEqual(upstream, inOrder(upstream, ofUpstream), name)
      for (const endpoint of endpoints) {
        assert.equal(endpoint.at(-1), 'example', name)
        assert.deepEqual(endpoint, inOrder(endpoint, ofEndpoint), name)
      }
    }
  })

  it('an upstream file declares parameters and data by fields, so that nothing has its schema apart from its reader', () => {
    for (const { name, text } of files) assert.doesNotMatch(text, /\bType\.Object\(/, name)
  })

  it('an upstream file has the recorded answers of its endpoints in the file of the same name', () => {
    const named = readdirSync(recordings)
    assert.deepEqual(
      named.filter((file) => !files.some(({ text }) => text.includes(`'./recordings/${file}'`))),
      [],
    )
    for (const { name, text } of files) {
      const recorded = JSON.parse(readFileSync(new URL(name.replace(/ts$/, 'json'), recordings), 'utf8'))
      const paths = [...text.matchAll(/\brecordings\['(\/[\w-]+)'\]/g)].map(([, path = '']) => path)
      assert.deepEqual(Object.keys(recorded).toSorted(), [...new Set(paths)].toSorted(), name)
      const declared = [...text.matchAll(/^ {4}'(\/[\w-]+)': endpoint\([\s\S]*?recordings\['(\/[\w-]+)'\]/gim)]
      for (const [, path, recordedAt] of declared) assert.equal(recordedAt, path, name)
    }
  })
})
