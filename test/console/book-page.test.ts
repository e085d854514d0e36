import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BOOK_PAGES, bookPage } from '../../src/console/book-page.ts'
import { loadAssets } from '../../src/pages/assets.ts'

describe("the operators' book in the console", () => {
  const assets = loadAssets(['console/browser/', 'fleet/words.js', 'docs/pictures/what-fails.svg'])

  it('the first page links to every other page', () => {
    const page = bookPage(assets)
    for (const name of BOOK_PAGES) assert.match(page, new RegExp(`href="/(book/)?${name}"`))
  })

  it('the runbooks begin with a picture that the console serves itself', () => {
    assert.match(
      bookPage(assets, 'runbooks'),
      /<img src="\/assets\/[\w-]+\/docs\/pictures\/what-fails\.svg" alt="A call /,
    )
  })

  it('links between pages lead to pages, and to sections that are there', () => {
    for (const name of BOOK_PAGES) {
      for (const [, path = '', anchor] of bookPage(assets, name).matchAll(/href="\/book\/([\w-]+)(?:#([\w-]+))?"/g)) {
        assert.ok(BOOK_PAGES.includes(path), `${name}: ${path}`)
        if (anchor !== undefined)
          assert.match(bookPage(assets, path), new RegExp(`id="${anchor}"`), `${name}: #${anchor}`)
      }
    }
  })

  it('links inside a page lead to sections that are there', () => {
    for (const name of [undefined, ...BOOK_PAGES]) {
      const page = bookPage(assets, name)
      for (const [, anchor = ''] of page.matchAll(/href="#([^"]+)"/g))
        assert.ok(page.includes(`id="${anchor}"`), `${name}: #${anchor}`)
    }
  })

  it('a link to a section of the first page leads there', () => {
    const [, anchor = ''] = /href="\/book#([\w-]+)"/.exec(bookPage(assets, 'tasks')) ?? assert.fail()
    assert.match(bookPage(assets), new RegExp(`id="${anchor}"`))
  })
})
