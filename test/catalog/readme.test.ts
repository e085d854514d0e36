import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { describe, it } from 'node:test'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { catalogTable } from '../support/catalog-table.ts'

const ROOT = new URL('../../', import.meta.url)

/** Pictures are looked at over slow lines too. */
const IMAGE_BYTES_MAX = 150_000

describe('README', () => {
  const text = readFileSync(new URL('README.md', ROOT), 'utf8')

  it('README lists every API of the catalog as it is', async () => {
    const [, table = ''] = /<!-- catalog:[^>]*-->\n(.*?)\n<!-- \/catalog -->/s.exec(text) ?? []
    assert.equal(table, catalogTable([...(await loadCatalog(new Map())).values()]))
  })

  it('README leads only to files that are there, and shows pictures of at most 150 KB', () => {
    for (const [, isImage, path = ''] of text.matchAll(/(!?)\[[^\]]*\]\((?!https?:|#)([^)]+)\)/g)) {
      const { size } = statSync(new URL(path, ROOT))
      if (isImage) assert.ok(size <= IMAGE_BYTES_MAX, `${path} has ${size} bytes`)
    }
  })
})
