import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import mealRecipes from '../../src/upstreams/meal-recipes.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const context = { now: Date.parse('2026-10-01T12:00:00Z') }
const search = mealRecipes.endpoints['/search']
const byIngredient = mealRecipes.endpoints['/by-ingredient']
const categories = mealRecipes.endpoints['/categories']
assert.ok(search && byIngredient && categories)

function answered(endpoint: typeof search, body: unknown, status = 200) {
  assert.ok(endpoint)
  const answer = { status, headers: {}, body }
  const result = interpretAnswers({ upstream: mealRecipes, endpoint }, [answer], {
    parameters: endpoint.example.parameters,
    context,
  })
  return 'data' in result ? result.data : result.responseClass.code
}

/** The only recipe of a search that found `meal`. */
function found(meal: Record<string, unknown>): Record<string, unknown> {
  const data = answered(search, { meals: [meal] })
  assert.ok(typeof data === 'object' && Array.isArray(data.meals) && data.meals.length === 1)
  return data.meals[0]
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [search, byIngredient, categories]) {
    assert.deepEqual(answered(endpoint, endpoint.example.response), endpoint.example.data)
  }
})

test('requests carry the public key in their path', () => {
  assert.deepEqual(search.request({ s: 'Arrabiata' }, context), {
    path: '/api/json/v1/1/search.php',
    query: { s: 'Arrabiata' },
  })
  assert.deepEqual(byIngredient.request({ i: 'chicken_breast' }, context), {
    path: '/api/json/v1/1/filter.php',
    query: { i: 'chicken_breast' },
  })
  assert.deepEqual(categories.request({}, context), { path: '/api/json/v1/1/categories.php' })
})

test('no match, null or a text for meals, is a success with an empty list', () => {
  for (const meals of [null, 'no data found', 'Invalid ID', 'No Data Found', '', []]) {
    assert.deepEqual(answered(search, { meals }), { meals: [] })
    assert.deepEqual(answered(byIngredient, { meals }), { meals: [] })
  }
})

test('ingredient slots that are empty, blank or null are skipped and do not end the list', () => {
  const meal = found({
    strIngredient1: 'penne',
    strMeasure1: '1 tin ',
    strIngredient2: '',
    strMeasure2: '2 cups',
    strIngredient3: ' ',
    strIngredient4: null,
    strIngredient5: ' basil ',
    strMeasure5: ' ',
    strIngredient20: 'salt',
    strMeasure20: null,
    strIngredient21: 'beyond the last slot',
  })
  assert.deepEqual(meal.ingredients, [
    { name: 'penne', measure: '1 tin' },
    { name: 'basil', measure: null },
    { name: 'salt', measure: null },
  ])
})

test('a meal of an older shape, without country and alternate name, is read', () => {
  const meal = found({ idMeal: '1', strMeal: 'Pie', strDrinkAlternate: null })
  assert.deepEqual(meal, {
    id: '1',
    name: 'Pie',
    category: null,
    area: null,
    country: null,
    instructions: null,
    thumbnail_url: null,
    tags: [],
    youtube_url: null,
    source_url: null,
    ingredients: [],
  })
})

test('tags are split at commas, and null or an empty text is no tag', () => {
  assert.deepEqual(found({ strTags: 'Pasta, Curry,' }).tags, ['Pasta', 'Curry'])
  assert.deepEqual(found({ strTags: null }).tags, [])
  assert.deepEqual(found({ strTags: '' }).tags, [])
})

test('empty links are null', () => {
  const meal = found({ strYoutube: '', strSource: '' })
  assert.equal(meal.youtube_url, null)
  assert.equal(meal.source_url, null)
})

test('ids are texts', () => {
  assert.equal(found({ idMeal: '0052771' }).id, '0052771')
})

test('blanks in an ingredient are sent as underscores', () => {
  assert.deepEqual(byIngredient.complete?.({ i: ' chicken  breast ' }, context), { i: 'chicken_breast' })
  assert.deepEqual(byIngredient.complete?.({ i: 'chicken_breast' }, context), { i: 'chicken_breast' })
})

test('blanks in the name of a meal are sent unchanged', () => {
  assert.deepEqual(search.complete?.({ s: ' apple pie ' }, context), { s: 'apple pie' })
})

test('blank values, which would find nothing, are refused', () => {
  const isAbout = (name: string) => (error: unknown) => error instanceof InvalidParameter && error.parameter === name
  assert.throws(() => search.complete?.({ s: '  ' }, context), isAbout('s'))
  assert.throws(() => byIngredient.complete?.({ i: '\t' }, context), isAbout('i'))
  assert.ok(!Value.Check(search.parameters, { s: '' }))
})

test('several ingredients at once, which need a supporter’s key, are refused', () => {
  assert.ok(!Value.Check(byIngredient.parameters, { i: 'chicken,garlic' }))
  assert.ok(Value.Check(byIngredient.parameters, { i: 'chicken breast' }))
})

test('descriptions of categories are trimmed', () => {
  const data = answered(categories, { categories: [{ idCategory: '1', strCategoryDescription: ' Beef.\r\n' }] })
  assert.deepEqual(data, { categories: [{ id: '1', name: null, thumbnail_url: null, description: 'Beef.' }] })
})

test('a wrong key in the path, 404 or 200 without JSON, is a failure of the upstream', () => {
  for (const endpoint of [search, byIngredient, categories]) {
    assert.equal(answered(endpoint, undefined, 404), 'UPSTREAM_ERROR')
    assert.equal(answered(endpoint, undefined), 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('an answer without a list is UPSTREAM_INVALID_RESPONSE', () => {
  for (const body of [{}, [], null, { meals: 0 }, { meals: {} }]) {
    assert.equal(answered(search, body), 'UPSTREAM_INVALID_RESPONSE')
    assert.equal(answered(byIngredient, body), 'UPSTREAM_INVALID_RESPONSE')
  }
  assert.equal(answered(categories, { categories: null }), 'UPSTREAM_INVALID_RESPONSE')
})

test('names that differ only in letter case share a stored answer', () => {
  assert.deepEqual(search.cache?.key?.({ s: 'ARRABIATA' }), search.cache?.key?.({ s: 'arrabiata' }))
  assert.deepEqual(byIngredient.cache?.key?.({ i: 'Garlic' }), byIngredient.cache?.key?.({ i: 'garlic' }))
})

test('recipes are stored for a day, and the categories, which do not change, for a week', () => {
  assert.equal(search.cache?.seconds, 86_400)
  assert.equal(byIngredient.cache?.seconds, 86_400)
  assert.equal(categories.cache?.seconds, 604_800)
})

test('the cap of the shared public key is a request a second on average, or less', () => {
  for (const { max, seconds } of mealRecipes.caps.rates) assert.ok(max <= seconds)
})
