import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Api, loadCatalog } from '../../src/catalog/catalog.ts'
import { rankApis } from '../../src/mcp/search.ts'

/** What someone asks for, and the API that should come first. */
const ASKED: [query: string, slug: string][] = [
  ['convert euros to dollars', 'currency'],
  ['temperature in Paris', 'weather'],
  ['What are the public holidays in Germany?', 'public-holidays'],
  ['stock price of apple', 'market-quotes'],
  ['bitcoin price', 'crypto-prices'],
  ['coordinates of a place name', 'geocoding'],
  ['ip address location', 'ip-lookup'],
  ['NBA scores', 'sports-scores'],
  ['recipes with chicken', 'meal-recipes'],
  ['time in Tokyo', 'timezone'],
  ['Pokémon', 'creature-game'],
]

describe('search_apis', () => {
  let apis: Api[]
  before(async () => {
    apis = [...(await loadCatalog(new Map())).values()]
  })

  for (const [query, slug] of ASKED) {
    it(`puts ${slug} first for "${query}"`, () => assert.equal(rankApis(apis, query)[0]?.slug, slug))
  }

  it('lists every API for no words, and none for words that no API has', () => {
    assert.equal(rankApis(apis, ' the ').length, apis.length)
    assert.deepEqual(rankApis(apis, 'xyzzy'), [])
  })
})
