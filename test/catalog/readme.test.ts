import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { generatedBlocks, withBlock } from '../tools/docs.ts'

const ROOT = new URL('../../', import.meta.url)

/**
 * Readers load pictures over slow lines too. A picture must load whole, and a recording its first
 * frame, which browsers show while the rest arrives.
 */
const PICTURE_BYTES_MAX = 150_000
const RECORDING_BYTES_MAX = 600_000

/** Most lines of README, because a newcomer reads it from top to bottom. */
const LINES_MAX = 170

const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8')

describe('documents', () => {
  it('settings and catalog stand in their documents as the code has them', async () => {
    for (const block of await generatedBlocks()) {
      const document = read(block.file)
      assert.equal(withBlock(document, block), document, `${block.file} is out of date: run npm run docs`)
    }
  })

  it('README leads only to files that are there, shows a picture within its first 150 KB, and is short', () => {
    const text = read('README.md')
    for (const [, isImage, path = ''] of text.matchAll(/(!?)\[[^\]]*\]\((?!https?:|#)([^)]+)\)/g)) {
      assert.ok(existsSync(new URL(path, ROOT)), `${path} is not there`)
      if (!isImage) continue
      const file = readFileSync(new URL(path, ROOT))
      // The second frame of an animated PNG begins with its first chunk of this name.
      const secondFrame = file.indexOf('fdAT')
      const picture = secondFrame < 0 ? file.length : secondFrame
      assert.ok(picture <= PICTURE_BYTES_MAX, `${path} shows nothing before ${picture} bytes`)
      assert.ok(file.length <= RECORDING_BYTES_MAX, `${path} has ${file.length} bytes`)
    }
    assert.ok(text.split('\n').length <= LINES_MAX, `README has ${text.split('\n').length} lines`)
  })
})
