import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createApi } from '../../../src/catalog/catalog.ts'
import { toEntry } from '../../../src/catalog/catalog-entry.ts'
import type { Upstream } from '../../../src/catalog/upstream.ts'
import { checkDocument } from '../../../src/operator/check-document.ts'
import { interpretAnswers } from '../../../workers/upstream/interpret.ts'

const GUIDE = new URL('../../../src/docs/operators/own-apis.md', import.meta.url)

describe('the guide to own APIs', () => {
  let folder = ''
  let blocks: { language: string; text: string }[] = []
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'guide-'))
    const text = await readFile(GUIDE, 'utf8')
    const found = text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)
    blocks = [...found].map(([, language = '', block = '']) => ({ language, text: block }))
  })
  after(async () => {
    await rm(folder, { recursive: true })
  })
  const block = (language: string, start: string): string =>
    blocks.find((each) => each.language === language && each.text.startsWith(start))?.text ?? assert.fail(start)

  it('the guide to own APIs has a document that can be served, also with its overlay', async () => {
    const [file, overlay] = [join(folder, 'stock.yaml'), join(folder, 'overlay.yaml')]
    await writeFile(file, block('yaml', 'openapi'))
    const { answer, text } = await checkDocument(file, undefined)
    assert.equal(answer.ok, true, text)
    assert.deepEqual(answer.leftOut, [])
    assert.deepEqual(answer.effects, { '/list-articles': 'read', '/add-article': 'once' })
    const withDebug = block('yaml', 'openapi').replace(
      'components:',
      '  /debug: { get: { responses: {} } }\ncomponents:',
    )
    await writeFile(file, withDebug)
    await writeFile(overlay, block('yaml', 'overlay'))
    const merged = await checkDocument(file, overlay)
    assert.equal(merged.answer.ok, true, merged.text)
    assert.equal(merged.answer.entry?.endpoints.length, 2)
  })

  it('the guide to own APIs has a TypeScript file whose example is what it maps', async () => {
    const file = join(folder, 'stock.ts')
    const catalog = new URL('../../../src/catalog/', import.meta.url).href
    await writeFile(file, block('ts', 'import').replaceAll("'../catalog/", `'${catalog}`))
    await mkdir(join(folder, 'recordings'))
    await writeFile(join(folder, 'recordings/stock.json'), block('json', '{'))
    const { default: upstream }: { default: Upstream } = await import(pathToFileURL(file).href)
    const api = createApi('stock', upstream, { settings: new Map(), isOperatorNamed: false })
    assert.equal(toEntry(api, 100).endpoints[0]?.path, '/article')
    const endpoint = upstream.endpoints['/article'] ?? assert.fail()
    const { parameters, response, data } = endpoint.example
    const answers = [{ status: 200, headers: {}, body: response }]
    const read = interpretAnswers({ upstream, endpoint }, answers, { parameters, context: { now: 0 } })
    assert.deepEqual(read, { data })
  })
})
