import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ReadDocument, readDocument } from '../../src/catalog/openapi/load-folder.ts'
import { type Finding, findingLine } from '../../src/catalog/openapi/report.ts'
import { type CheckAnswer, checkDocument } from '../../src/operator/check-document.ts'

const folder = mkdtempSync(join(tmpdir(), 'own-'))
// Several test files in one process write into the folder.
process.once('exit', () => rmSync(folder, { recursive: true }))

/** A document of two operations, of which the second has what a test is about. */
export function document(
  parts: { root?: object; operation?: object; path?: string; schema?: unknown; media?: object } = {},
): object {
  const {
    root = {},
    operation = {},
    path = '/things',
    schema = { type: 'object', properties: { a: { type: 'string' } } },
    media = {},
  } = parts
  const content = { 'application/json': { schema, ...media } }
  return {
    openapi: '3.1.0',
    info: { title: 'Things', version: '1' },
    servers: [{ url: 'https://things.example.com' }],
    'x-gateway': { caps: { concurrency: 2, rates: [] } },
    paths: {
      [path]: { get: { operationId: 'listThings', responses: { 200: { description: 'ok', content } }, ...operation } },
    },
    ...root,
  }
}

async function write(given: object | string, name: string): Promise<string> {
  const file = join(folder, name)
  const isText = typeof given === 'string' || given instanceof Uint8Array
  await writeFile(file, isText ? given : JSON.stringify(given, null, 1))
  return file
}

/** The upstream that a process makes from a document. */
export async function readWritten(given: object | string, name = 'things.json'): Promise<ReadDocument> {
  return await readDocument(await write(given, name), { overlay: undefined, builtIn: [], taken: new Map() })
}

/** The output of `operator check` for a document: an object, or the text of its file. */
export async function check(given: object | string, name = 'things.json', overlay?: object): Promise<CheckAnswer> {
  const file = await write(given, name)
  const overlayFile = join(folder, `${name}.overlay`)
  if (overlay) await writeFile(overlayFile, JSON.stringify(overlay))
  return (await checkDocument(file, overlay ? overlayFile : undefined)).answer
}

/** Errors and parts that are left out, one line each. */
export const words = ({ errors, leftOut }: { errors: Finding[]; leftOut: Finding[] }): string =>
  [...errors, ...leftOut].map(findingLine).join('\n')
