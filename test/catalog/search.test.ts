import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Api, loadCatalog } from '../../src/catalog/catalog.ts'
import { rankApis } from '../../src/catalog/search.ts'

/** Searches in everyday words, and the API that should come first. */
const ASKED: [query: string, slug: string][] = [
  ['convert euros to dollars', 'currency'],
  ['convert 100 USD to EUR', 'currency'],
  ['USD EUR', 'currency'],
  ['exchange rate of the yen', 'currency'],
  ['forex', 'currency'],
  ['temperature in Paris', 'weather'],
  ['how warm is it in Berlin', 'weather'],
  ['rain tomorrow', 'weather'],
  ['do I need an umbrella', 'weather'],
  ['hot', 'weather'],
  ['weahter', 'weather'],
  ['wether in London', 'weather'],
  ['is the air clean', 'air-quality'],
  ['smog and pollen', 'air-quality'],
  ['What are the public holidays in Germany?', 'public-holidays'],
  ['holiday germany', 'public-holidays'],
  ['is monday a bank holiday', 'public-holidays'],
  ['stock price of apple', 'market-quotes'],
  ['share price', 'market-quotes'],
  ['bitcoin price', 'crypto-prices'],
  ['ethereum', 'crypto-prices'],
  ['coordinates of a place name', 'geocoding'],
  ['street address to latitude', 'geocoding'],
  ['ip address location', 'ip-lookup'],
  ['NBA scores', 'sports-scores'],
  ['football results', 'sports-scores'],
  ['baseball', 'sports-scores'],
  ['basketball games tonight', 'sports-scores'],
  ['soccer', 'sports-scores'],
  ['recipes with chicken', 'meal-recipes'],
  ['what can I cook for dinner', 'meal-recipes'],
  ['time in Tokyo', 'timezone'],
  ['what time is it in New York', 'timezone'],
  ['Pokémon', 'creature-game'],
  ['election odds', 'prediction-markets'],
  ['who will win the election', 'prediction-markets'],
  ['meaning of a word', 'dictionary'],
  ['who was Marie Curie', 'encyclopedia'],
  ['when does the sun rise', 'sunrise-sunset'],
  ['photo of a puppy', 'dog-images'],
  ['nasa picture of the day', 'space-picture'],
  ['hacker news', 'tech-forum'],
  ['breaking news', 'news'],
  ['quiz questions', 'trivia'],
  ['capital of France', 'countries'],
  ['gdp of japan', 'development-indicators'],
  ['github stars of a project', 'code-host-search'],
  ['dummy users for testing', 'mock-data'],
  ['tell me something funny', 'random-facts'],
  ['currancy', 'currency'],
  ['S&P 500', 'market-quotes'],
  ['s & p index', 'market-quotes'],
  ['SP500', 'market-quotes'],
  ['wetter', 'weather'],
  ['Eiffel Tower', 'encyclopedia'],
  ['landmark', 'encyclopedia'],
  ['gold price', 'market-quotes'],
  ['bitcion price', 'crypto-prices'],
  ['what should I wear when hiking with grandparents outside in rain', 'weather'],
]

/** Searches for what no API has. A model would call whatever the search names. */
const NOT_OFFERED = ['movie', 'movie ratings', 'tides', 'flights to Paris', 'vat number', 'wine', 'song lyrics']

describe('the search', () => {
  let apis: Api[]
  before(async () => {
    apis = [...(await loadCatalog(new Map())).values()]
  })

  for (const [query, slug] of ASKED) {
    it(`the search puts ${slug} first for "${query}"`, () => {
      assert.equal(rankApis(apis, query)[0]?.slug, slug)
      const [alone, ...others] = rankApis(apis, query, (api) => api.slug === slug)
      assert.deepEqual([alone?.slug, others], [slug, []], 'a key for this API alone')
    })
  }

  it('the search lists every API for no words, and none for words that no API has', () => {
    assert.equal(rankApis(apis, ' the ').length, apis.length)
    assert.deepEqual(
      rankApis(apis, ' the ', ({ slug }) => slug === 'trivia').map(({ slug }) => slug),
      ['trivia'],
    )
    assert.deepEqual(rankApis(apis, 'xyzzy'), [])
    assert.deepEqual(
      rankApis(apis, 'weather', ({ slug }) => slug === 'trivia'),
      [],
    )
    assert.deepEqual(rankApis(apis, 'ketter'), [], 'the first letter of letter, better and weather is another')
  })

  it('the search finds the only API of a gateway, and APIs of the same kind that are all there are', () => {
    const only = (...slugs: string[]) => apis.filter(({ slug }) => slugs.includes(slug))
    const found = (among: Api[], query: string) => rankApis(among, query).map(({ slug }) => slug)
    assert.deepEqual(found(only('dog-images'), 'dog'), ['dog-images'])
    assert.deepEqual(found(only('dog-images'), 'weather'), [])
    const users = only('code-host-search', 'code-host-user')
    assert.deepEqual(found(users, 'github').sort(), ['code-host-search', 'code-host-user'])
  })

  it('the search leaves out what fits far less than the best', () => {
    const found = (query: string) => rankApis(apis, query).map(({ slug }) => slug)
    assert.ok(found('exchange rate').length < 5)
    assert.deepEqual(found('air quality'), ['air-quality'])
    assert.deepEqual(found('pollen in Vienna'), ['air-quality'], 'polls are no form of pollen')
    assert.deepEqual(found('capital of Germany'), ['countries'], 'capitalization is no form of capital')
    assert.deepEqual(found('population of France'), ['countries', 'development-indicators'], 'France is no franc')
    assert.deepEqual(found('github stars'), ['code-host-search', 'code-host-user'])
  })

  for (const query of NOT_OFFERED) {
    it(`the search finds nothing for "${query}"`, () => assert.deepEqual(rankApis(apis, query), []))
  }

  it('the search finds a word that somebody is still typing', () => {
    assert.equal(rankApis(apis, 'temperatu')[0]?.slug, 'weather')
    assert.equal(rankApis(apis, 'bank holi')[0]?.slug, 'public-holidays')
  })

  it('the search counts the first eight words of a query, so that nobody makes it slow', () => {
    const unknown = ['qzxva', 'qzxvb', 'qzxvc', 'qzxvd', 'qzxve', 'qzxvf', 'qzxvg', 'qzxvh']
    assert.deepEqual(rankApis(apis, [...unknown, 'weather'].join(' ')), [])
    assert.equal(rankApis(apis, [...unknown.slice(1), 'weather'].join(' '))[0]?.slug, 'weather')
  })

  it('the search reads the beginning of a query, whatever its length', () => {
    const long = `${' '.repeat(300)}weather ${'\uFDFA'.repeat(100_000)}`
    assert.equal(rankApis(apis, long)[0]?.slug, 'weather')
    assert.equal(rankApis(apis, `${' '.repeat(400)}weather`).length, apis.length)
  })
})
