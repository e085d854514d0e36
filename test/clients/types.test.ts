import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Catalog, createApi } from '../../src/catalog/catalog.ts'
import { clientApis, TypeNames } from '../../src/clients/client-api.ts'
import { npmPackage } from '../../src/clients/packages.ts'
import { pythonClient } from '../../src/clients/python-client.ts'
import { pythonType } from '../../src/clients/python-types.ts'
import { typescriptClient } from '../../src/clients/typescript-client.ts'
import { typescriptType } from '../../src/clients/typescript-types.ts'
import { document, readWritten } from '../support/own-document.ts'

const run = promisify(execFile)
const COMPILER = resolve(import.meta.dirname, '../../node_modules/typescript/bin/tsc')
const GATEWAY = { baseUrl: 'http://gateway.test', callTimeoutMs: 30_000 }

// Documents of own APIs have such lists, and one file holds the types of all APIs.
test('a list of values that is empty is a type that both languages can read', () => {
  const schema = { type: 'object', properties: { kind: { enum: [] }, all: { type: 'array', items: { enum: [] } } } }
  assert.equal(typescriptType(schema), '{\n  kind?: never\n  all?: never[]\n}')
  assert.equal(pythonType({ enum: [] }, 'Kind', { names: new TypeNames(''), list: [] }), 'Any')
})

test('a parameter of 64 bits may be given as a string, as the gateway demands for long numbers', async () => {
  const id = { name: 'id', in: 'query', schema: { type: 'integer', format: 'int64' } }
  const responses = { 204: { description: 'done' } }
  const paths = { '/p': { get: { operationId: 'read', parameters: [id], responses } } }
  const { upstream = assert.fail() } = await readWritten(document({ root: { paths } }), 'long.json')
  const catalog = new Catalog()
  catalog.set('long', createApi('long', upstream, { settings: new Map(), isOperatorNamed: true }))
  assert.match(typescriptClient(clientApis(catalog), GATEWAY), /^ {2}id\?: number \| string$/m)
  assert.match(
    pythonClient(clientApis(catalog), GATEWAY),
    /def read\(self, \*, id: Optional\[Union\[int, str\]\] = None\)/,
  )
})

/** Slugs whose types would have names that the clients use themselves, each with an operation. */
const NAMES = {
  ...{ answer: 'answer', batch: 'call', error: 'code', gateway: 'error', iterator: 'iterator', none: 'none' },
  ...{ 'no-redirects': 'x', s: 's', t: 't', transport: 'transport', object: 'object' },
}

/** An API whose operations and members have names that are hard for clients. */
function hardDocument(operationId: string): object {
  const text = { type: 'string' }
  const parts = { type: 'object', properties: { x: text, 'a b': text, '*/': { ...text, description: '*/ """ \\' } } }
  const values = { enum: [[true], { x: null }, 0.5], const: { a: true } }
  const answer = (schema: object) => ({
    200: { description: 'ok', content: { 'application/json': { schema } } },
  })
  const parameters = ['data', 'int', 'self', 'class', 'options', 'parameters'].map((name) => ({
    ...{ name, in: 'query', schema: text },
  }))
  const operations: Record<string, object> = {
    [operationId]: { responses: answer({ properties: { a: text } }) },
    meta: { parameters, responses: answer({ properties: { parameters: parts, c: parts, items: { items: parts } } }) },
    'meta-c': { responses: answer({ properties: { d: text } }) },
    'meta-parameters': { responses: answer({ properties: { e: values, f: { enum: [0.5, 1.5] } } }) },
    'meta-items-item': { responses: answer({}) },
    int: { parameters, responses: answer({ additionalProperties: { type: 'integer' } }) },
  }
  const paths = Object.entries(operations).map(([id, operation], index) => {
    return [`/p${index}`, { get: { operationId: id, ...operation } }]
  })
  return document({ root: { paths: Object.fromEntries(paths) } })
}

test('types of an API never have the name of a type of the clients, and both languages accept all names', async (t) => {
  const catalog = new Catalog()
  for (const [slug, operationId] of Object.entries(NAMES)) {
    const { upstream = assert.fail(slug) } = await readWritten(hardDocument(operationId), `${slug}.json`)
    catalog.set(slug, createApi(slug, upstream, { settings: new Map(), isOperatorNamed: true }))
  }
  const apis = clientApis(catalog)
  const folder = await mkdtemp(join(tmpdir(), 'agw-types-'))
  t.after(() => rm(folder, { recursive: true }))
  const source = typescriptClient(apis, GATEWAY)
  assert.match(source, /"answer\/answer": \{ parameters: Record<string, never>; data: Answer_2 \}/)
  await writeFile(join(folder, 'client.ts'), source)
  const settings = JSON.parse(npmPackage(source, { ...GATEWAY, version: '1.0.0' })['tsconfig.json'] ?? '')
  const compilerOptions = { ...settings.compilerOptions, rootDir: '.', noEmit: true }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['client.ts'] }))
  await run(process.execPath, [COMPILER, '-p', folder]).catch(({ stdout }) => assert.fail(stdout))
  await writeFile(join(folder, 'client.py'), pythonClient(apis, GATEWAY))
  const isThere = (command: string) => run(command, ['--version']).catch(() => undefined)
  if (!(await isThere('python3'))) return t.skip('there is no python3 here')
  const program =
    'from client import Gateway, Answer, Answer_2; print(Answer.__doc__, Gateway("k").answer_.meta.__doc__)'
  const { stdout } = await run('python3', ['-c', program], { cwd: folder })
  assert.match(stdout, /^The data of an answer, with its metadata\. GET \/p1/)
  if (!(await isThere('mypy'))) return t.skip('there is no mypy here: the types for Python were not checked')
  const checked = ['--strict', '--cache-dir', join(folder, 'mypy'), join(folder, 'client.py')]
  await run('mypy', checked).catch(({ stdout: complaints }) => assert.fail(complaints))
})
