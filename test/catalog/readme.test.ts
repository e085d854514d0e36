import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { describe, it } from 'node:test'
import { generatedBlocks, withBlock } from '../tools/docs.ts'

const ROOT = new URL('../../', import.meta.url)

/** Pictures are looked at over slow lines too. */
const IMAGE_BYTES_MAX = 150_000

/** A newcomer reads it whole. */
const LINES_MAX = 170

const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8')

describe('documents', () => {
  it('settings and catalog stand in their documents as the code has them', async () => {
    for (const block of await generatedBlocks()) {
      const document = read(block.file)
      assert.equal(withBlock(document, block), document, `${block.file} is out of date: run npm run docs`)
    }
  })

  it('README leads only to files that are there, shows pictures of at most 150 KB, and is short', () => {
    const text = read('README.md')
    for (const [, isImage, path = ''] of text.matchAll(/(!?)\[[^\]]*\]\((?!https?:|#)([^)]+)\)/g)) {
      const { size } = statSync(new URL(path, ROOT))
      if (isImage) assert.ok(size <= IMAGE_BYTES_MAX, `${path} has ${size} bytes`)
    }
    assert.ok(text.split('\n').length <= LINES_MAX, `README has ${text.split('\n').length} lines`)
  })
})
