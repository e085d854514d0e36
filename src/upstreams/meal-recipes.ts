import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, members, text } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { trimmed } from '../catalog/parameter-values.ts'
import { param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/meal-recipes.json' with { type: 'json' }

/** A meal has this many numbered pairs of ingredient and measure, used or not. */
const INGREDIENTS_MAX = 20

const listed = {
  id: field.text('idMeal', 'Number of the recipe, as text'),
  name: field.text('strMeal', 'Name of the dish'),
  thumbnail_url: field.text('strMealThumb', 'Picture of the dish'),
}

const recipes = record({
  meals: required.recordOfEach('meals', 'Recipes found', {
    id: listed.id,
    name: listed.name,
    category: field.text('strCategory', 'Category, as /categories names it'),
    area: field.text('strArea', 'Cuisine, `Italian`'),
    country: field.text('strCountry', 'Country the dish comes from'),
    instructions: field.text('strInstructions', 'Steps of the recipe, in English'),
    thumbnail_url: listed.thumbnail_url,
    tags: field.texts(({ strTags }) => wordsOf(strTags), 'Keywords'),
    youtube_url: field.filledText('strYoutube', 'Video of the recipe'),
    source_url: field.filledText('strSource', 'Page the recipe comes from'),
    ingredients: field.records(ingredientsOf, 'Ingredients with their amounts, in the order of the recipe', {
      name: required.text(({ name }) => filledText(name)?.trim(), 'Name of the ingredient'),
      measure: field.text(({ measure }) => filledText(measure)?.trim(), 'Amount with its unit, as free text'),
    }),
  }),
})

const byIngredient = record({ meals: required.recordOfEach('meals', 'Recipes that use the ingredient', listed) })

const categories = record({
  categories: required.recordOfEach('categories', 'All categories of dishes', {
    id: field.text('idCategory', 'Number of the category, as text'),
    name: field.text('strCategory', 'Name of the category'),
    thumbnail_url: field.text('strCategoryThumb', 'Picture of the category'),
    description: field.text(
      ({ strCategoryDescription }) => text(strCategoryDescription)?.trim(),
      'What the category holds, in English',
    ),
  }),
})

export default upstream({
  displayName: 'Meal recipes',
  category: 'food',
  description: 'Recipes with ingredients and instructions, by name or main ingredient, and the meal categories.',
  tags: ['food', 'recipes', 'meals', 'cooking', 'ingredients'],
  keywords: words('cook dinner lunch breakfast dish cuisine eat kitchen chicken dessert'),
  terms: {
    nonCommercial: true,
    summary: 'The public key 1 is for development and education; a public service is asked to become a supporter.',
    url: 'https://www.themealdb.com/api.php',
    attribution: 'Recipes by TheMealDB.com',
  },
  baseUrl: 'https://www.themealdb.com',
  // No quota is published; everyone shares the public key, so one a second on average.
  caps: { concurrency: 2, rates: [{ max: 60, seconds: 60 }] },
  probe: { request: { path: path`/api/json/v1/1/list.php`, query: { c: 'list' } }, everySeconds: 300 },
  mayLack: words('youtube_url source_url measure country'),
  endpoints: {
    '/search': endpoint({
      description: 'Meals whose name contains a text, with ingredients and instructions.',
      parameters: {
        s: param.text('Meal name or a part of it', { normalize: trimmed, aliases: ['name', 'q', 'query'] }),
      },
      data: recipes,
      cache: {
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        key: ({ s }) => ({ s: s.toLowerCase() }),
      },
      request: ({ s }) => ({ path: path`/api/json/v1/1/search.php`, query: { s } }),
      rejects: [400],
      readFrom: mealsIn,
      example: recordings['/search'],
    }),

    '/by-ingredient': endpoint({
      description: 'Meals that use a main ingredient: id, name and picture. Search the name for the recipe.',
      parameters: {
        // Several ingredients at once are for supporters.
        i: param.text('One main ingredient, `chicken breast`', {
          pattern: '^[^,]*$',
          // The upstream writes blanks as underscores.
          normalize: (name, ingredient) => trimmed(name, ingredient).replace(/\s+/g, '_'),
          aliases: ['ingredient', 'q', 'query'],
        }),
      },
      data: byIngredient,
      cache: {
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        key: ({ i }) => ({ i: i.toLowerCase() }),
      },
      request: ({ i }) => ({ path: path`/api/json/v1/1/filter.php`, query: { i } }),
      rejects: [400],
      readFrom: mealsIn,
      example: recordings['/by-ingredient'],
    }),

    '/categories': endpoint({
      description: 'All meal categories with descriptions.',
      data: categories,
      cache: { ...freshFor(lifetime.week), staleIfErrorSeconds: lifetime.month },
      request: () => ({ path: path`/api/json/v1/1/categories.php` }),
      example: recordings['/categories'],
    }),
  },
})

/** An answer without meals has null or some text for them. */
function mealsIn({ body }: { body: unknown }) {
  const { meals } = members(body)
  return meals === null || typeof meals === 'string' ? { meals: [] } : { meals }
}

/** The words of a list with commas. */
function wordsOf(list: unknown): string[] {
  const words = (text(list) ?? '').split(',').map((word) => word.trim())
  return words.filter((word) => word !== '')
}

/** The numbered slots; an empty slot does not end the list. */
function ingredientsOf(meal: Source): Source[] {
  const slots = Array.from({ length: INGREDIENTS_MAX }, (_, index) => index + 1)
  return slots
    .map((slot) => ({ name: meal[`strIngredient${slot}`], measure: meal[`strMeasure${slot}`] }))
    .filter(({ name }) => (typeof name === 'string' ? name.trim() !== '' : (name ?? null) !== null))
}
