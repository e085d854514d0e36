/**
 * How the files of src/upstreams are written: the same order in all, and each field of the data
 * said once.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

const SRC = new URL('../../src/', import.meta.url)
const files = readdirSync(new URL('upstreams/', SRC))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(new URL(`upstreams/${name}`, SRC), 'utf8') }))

const contract = readFileSync(new URL('catalog/upstream.ts', SRC), 'utf8')

/** Kinds of statements, in the order in which they stand in a file. */
const KINDS = ['import', 'constant', 'upstream', 'export', 'function', 'recorded']

function kindOf(line: string): string {
  if (/^const \w+: Upstream = /.test(line)) return 'upstream'
  if (/^function recorded[A-Z]/.test(line)) return 'recorded'
  const [word = ''] = line.split(' ', 1)
  return ['const', 'type', 'interface'].includes(word) ? 'constant' : word
}

/** Members of an interface of upstream.ts, in the order in which they are documented. */
function documentedMembers(name: string): string[] {
  const [, body = ''] = new RegExp(`^export interface ${name}\\b.* \\{\\n([^]*?)^\\}`, 'm').exec(contract) ?? []
  const members = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member = '']) => member)
  assert.ok(members.length > 5, name)
  return members
}

/** The upstream's own members, then those of each endpoint. */
function membersOf(text: string): { upstream: string[]; endpoints: string[][] } {
  const declaration = text.slice(text.search(/^const \w+: Upstream = /m), text.search(/^export default/m))
  const [head = '', ...endpoints] = declaration.split(/^ {4}'\/.*endpoint\(/m)
  const namesIn = (part: string, indent: number): string[] =>
    [...part.matchAll(new RegExp(`^ {${indent}}(\\w+)[:,]`, 'gm'))].map(([, name = '']) => name)
  return { upstream: namesIn(head, 2), endpoints: endpoints.map((part) => namesIn(part, 6)) }
}

const inOrder = (names: string[], order: string[]): string[] =>
  names.toSorted((one, other) => order.indexOf(one) - order.indexOf(other))

describe('an upstream file', () => {
  it('an upstream file is seen by these checks, and so are its endpoints', () => {
    assert.ok(files.length >= 28)
    const endpoints = files.flatMap(({ text }) => membersOf(text).endpoints)
    assert.equal(endpoints.length, files.flatMap(({ text }) => text.match(/\bendpoint\(/g) ?? []).length)
  })

  it('an upstream file has its imports first, then constants, the upstream, its export, functions, and recorded answers last', () => {
    for (const { name, text } of files) {
      const lines = text.match(/^(?:import|const|type|interface|export|function) .*$/gm) ?? []
      const kinds = lines.map(kindOf)
      assert.deepEqual(kinds, inOrder(kinds, KINDS), name)
      assert.equal(kinds.filter((kind) => kind === 'upstream').length, 1, name)
      assert.equal(kinds.at(-1), 'recorded', name)
      assert.doesNotMatch(text, /^ +example: \{/m, `${name}: its recorded answers stand at its end`)
    }
  })

  it('an upstream file has its members, and those of its endpoints, in the order in which upstream.ts documents them', () => {
    const ofUpstream = documentedMembers('Upstream')
    const ofEndpoint = documentedMembers('Endpoint')
    for (const { name, text } of files) {
      const { upstream, endpoints } = membersOf(text)
      assert.deepEqual(upstream, inOrder(upstream, ofUpstream), name)
      for (const endpoint of endpoints) {
        assert.ok(endpoint.includes('description') && endpoint.includes('data') && endpoint.includes('example'), name)
        assert.deepEqual(endpoint, inOrder(endpoint, ofEndpoint), name)
      }
    }
  })

  it('an upstream file makes the data of each endpoint from fields, so that no field has its type apart from its reader', () => {
    for (const { name, text } of files) {
      const data = text.match(/^ {6}data\b.*$/gm) ?? []
      assert.equal(data.length, membersOf(text).endpoints.length, name)
      for (const line of data) assert.match(line, /^ {6}data: \w+\.schema,$/, name)
      // Besides fields, schemas describe parameters alone.
      assert.doesNotMatch(text, /(?<!\bparameters[:,] ?|\bparameters = )Type\.Object\(/, name)
    }
  })
})
