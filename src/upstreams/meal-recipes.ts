import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, items, members, text } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { TEXT_LENGTH_MAX } from '../catalog/shared-parameters.ts'
import { endpoint, path, trimmed, type Upstream } from '../catalog/upstream.ts'

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

const mealRecipes: Upstream = {
  displayName: 'Meal recipes',
  category: 'food',
  description: 'Recipes with ingredients and instructions, by name or main ingredient, and the meal categories.',
  tags: ['food', 'recipes', 'meals', 'cooking', 'ingredients'],
  keywords: ['cook', 'dinner', 'lunch', 'breakfast', 'dish', 'cuisine', 'eat', 'kitchen', 'chicken', 'dessert'],
  tierRequired: 'developer',
  terms: {
    nonCommercial: true,
    summary: 'The public key 1 is for development and education; a public service is asked to become a supporter.',
    url: 'https://www.themealdb.com/api.php',
    attribution: 'Recipes by TheMealDB.com',
  },
  baseUrl: 'https://www.themealdb.com',
  // No quota is published; everyone shares the public key, so one a second on average.
  caps: { concurrency: 2, rates: [{ max: 60, seconds: 60 }] },
  probe: {
    request: { path: path`/api/json/v1/1/list.php`, query: { c: 'list' } },
    everySeconds: 300,
  },
  mayLack: ['youtube_url', 'source_url', 'measure', 'country'],
  endpoints: {
    '/search': endpoint({
      description: 'Meals whose name contains a text, with ingredients and instructions.',
      parameters: Type.Object({
        s: Type.String({
          minLength: 1,
          maxLength: TEXT_LENGTH_MAX,
          description: 'Meal name or a part of it',
        }),
      }),
      aliases: { s: ['name', 'q', 'query'] },
      data: recipes.schema,
      cache: {
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        key: ({ s }) => ({ s: s.toLowerCase() }),
      },
      complete: (parameters) => ({ ...parameters, s: trimmed('s', parameters.s) }),
      request: ({ s }) => ({ path: path`/api/json/v1/1/search.php`, query: { s } }),
      rejects: [400],
      map: ({ body }) => recipes.read({ meals: mealsOf(body) }) ?? invalid(),
      example: recordedSearch(),
    }),

    '/by-ingredient': endpoint({
      description: 'Meals that use a main ingredient: id, name and picture. Search the name for the recipe.',
      parameters: Type.Object({
        i: Type.String({
          minLength: 1,
          maxLength: TEXT_LENGTH_MAX,
          // Several ingredients at once are for supporters.
          pattern: '^[^,]*$',
          description: 'One main ingredient, `chicken breast`',
        }),
      }),
      aliases: { i: ['ingredient', 'q', 'query'] },
      data: byIngredient.schema,
      cache: {
        ...freshFor(lifetime.day),
        staleIfErrorSeconds: lifetime.month,
        key: ({ i }) => ({ i: i.toLowerCase() }),
      },
      // The upstream writes blanks as underscores.
      complete: (parameters) => ({ ...parameters, i: trimmed('i', parameters.i).replace(/\s+/g, '_') }),
      request: ({ i }) => ({ path: path`/api/json/v1/1/filter.php`, query: { i } }),
      rejects: [400],
      map: ({ body }) => byIngredient.read({ meals: mealsOf(body) }) ?? invalid(),
      example: recordedByIngredient(),
    }),

    '/categories': endpoint({
      description: 'All meal categories with descriptions.',
      parameters: Type.Object({}),
      data: categories.schema,
      cache: { ...freshFor(lifetime.week), staleIfErrorSeconds: lifetime.month },
      request: () => ({ path: path`/api/json/v1/1/categories.php` }),
      map: ({ body }) => categories.read(body) ?? invalid(),
      example: recordedCategories(),
    }),
  },
}

export default mealRecipes

/** The meals of an answer, which has null or some text for none; undefined when it has neither. */
function mealsOf(body: unknown): unknown[] | undefined {
  const { meals } = members(body)
  return meals === null || typeof meals === 'string' || Array.isArray(meals) ? items(meals) : undefined
}

/** The words of a list with commas. */
function wordsOf(list: unknown): string[] {
  const words = (text(list) ?? '').split(',').map((word) => word.trim())
  return words.filter((word) => word !== '')
}

/** The numbered slots; an empty slot does not end the list. */
function ingredientsOf(meal: Source): Source[] {
  const slots = Array.from({ length: INGREDIENTS_MAX }, (_, index) => index + 1)
  return slots.map((slot) => ({ name: meal[`strIngredient${slot}`], measure: meal[`strMeasure${slot}`] }))
}

function recordedSearch() {
  return {
    parameters: { s: 'Arrabiata' },
    // biome-ignore format: as recorded
    response: {
      meals: [
        {
          idMeal: '52771', strMeal: 'Spicy Arrabiata Penne', strMealAlternate: null, strCategory: 'Vegetarian', strArea: 'Italian', strCountry: 'Italy',
          strInstructions: 'Bring a large pot of water to a boil. Add kosher salt to the boiling water, then add the pasta. Cook according to the package instructions, about 9 minutes.\r\nIn [cut]',
          strMealThumb: 'https://www.themealdb.com/images/media/meals/ustsqw1468250014.jpg', strTags: 'Pasta,Curry',
          strYoutube: 'https://www.youtube.com/watch?v=1IszT_guI08', strIngredient1: 'penne rigate', strIngredient2: 'olive oil',
          strIngredient3: 'garlic', strIngredient4: 'chopped tomatoes', strIngredient5: 'red chilli flakes', strIngredient6: 'italian seasoning',
          strIngredient7: 'basil', strIngredient8: 'Parmigiano-Reggiano', strIngredient9: '', strIngredient10: '', strIngredient11: '',
          strIngredient12: '', strIngredient13: '', strIngredient14: '', strIngredient15: '', strIngredient16: null, strIngredient17: null,
          strIngredient18: null, strIngredient19: null, strIngredient20: null, strMeasure1: '1 pound', strMeasure2: '1/4 cup', strMeasure3: '3 cloves',
          strMeasure4: '1 tin ', strMeasure5: '1/2 teaspoon', strMeasure6: '1/2 teaspoon', strMeasure7: '6 leaves', strMeasure8: 'sprinkling',
          strMeasure9: '', strMeasure10: '', strMeasure11: '', strMeasure12: '', strMeasure13: '', strMeasure14: '', strMeasure15: '', strMeasure16: null,
          strMeasure17: null, strMeasure18: null, strMeasure19: null, strMeasure20: null, strSource: null, strImageSource: null,
          strCreativeCommonsConfirmed: null, dateModified: null,
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      meals: [
        {
          id: '52771', name: 'Spicy Arrabiata Penne', category: 'Vegetarian', area: 'Italian', country: 'Italy',
          instructions: 'Bring a large pot of water to a boil. Add kosher salt to the boiling water, then add the pasta. Cook according to the package instructions, about 9 minutes.\r\nIn [cut]',
          thumbnail_url: 'https://www.themealdb.com/images/media/meals/ustsqw1468250014.jpg', tags: ['Pasta', 'Curry'],
          youtube_url: 'https://www.youtube.com/watch?v=1IszT_guI08', source_url: null,
          ingredients: [
            { name: 'penne rigate', measure: '1 pound' }, { name: 'olive oil', measure: '1/4 cup' }, { name: 'garlic', measure: '3 cloves' },
            { name: 'chopped tomatoes', measure: '1 tin' }, { name: 'red chilli flakes', measure: '1/2 teaspoon' },
            { name: 'italian seasoning', measure: '1/2 teaspoon' }, { name: 'basil', measure: '6 leaves' },
            { name: 'Parmigiano-Reggiano', measure: 'sprinkling' },
          ],
        },
      ],
    },
  }
}

function recordedByIngredient() {
  return {
    parameters: { i: 'chicken_breast' },
    // biome-ignore format: as recorded
    response: {
      meals: [
        { strMeal: 'Chick-Fil-A Sandwich', strMealThumb: 'https://www.themealdb.com/images/media/meals/sbx7n71587673021.jpg', idMeal: '53016' },
        { strMeal: 'Chicken Couscous', strMealThumb: 'https://www.themealdb.com/images/media/meals/qxytrx1511304021.jpg', idMeal: '52850' },
        { strMeal: 'Chicken Fajita Mac and Cheese', strMealThumb: 'https://www.themealdb.com/images/media/meals/qrqywr1503066605.jpg', idMeal: '52818' },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      meals: [
        { id: '53016', name: 'Chick-Fil-A Sandwich', thumbnail_url: 'https://www.themealdb.com/images/media/meals/sbx7n71587673021.jpg' },
        { id: '52850', name: 'Chicken Couscous', thumbnail_url: 'https://www.themealdb.com/images/media/meals/qxytrx1511304021.jpg' },
        { id: '52818', name: 'Chicken Fajita Mac and Cheese', thumbnail_url: 'https://www.themealdb.com/images/media/meals/qrqywr1503066605.jpg' },
      ],
    },
  }
}

function recordedCategories() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: {
      categories: [
        {
          idCategory: '1', strCategory: 'Beef', strCategoryThumb: 'https://www.themealdb.com/images/category/beef.png',
          strCategoryDescription: 'Beef is the culinary name for meat from cattle, particularly skeletal muscle. Humans have been eating beef since prehistoric times.[1] Beef is a source of high-quality protein and essential nutrients.[2]',
        },
        {
          idCategory: '2', strCategory: 'Chicken', strCategoryThumb: 'https://www.themealdb.com/images/category/chicken.png',
          strCategoryDescription: 'Chicken is a type of domesticated fowl, a subspecies of the red junglefowl. It is one of the most common and widespread domestic animals, with a total population of more than 19 billion as of 2011.[1] Humans commonly keep chickens as a source of food (consuming both their meat and eggs) and, more rarely, as pets.',
        },
        {
          idCategory: '3', strCategory: 'Dessert', strCategoryThumb: 'https://www.themealdb.com/images/category/dessert.png',
          strCategoryDescription: 'Dessert is a course that concludes a meal. The course usually consists of sweet foods, such as confections dishes or fruit, and possibly a beverage such as dessert wine or liqueur.',
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      categories: [
        {
          id: '1', name: 'Beef', thumbnail_url: 'https://www.themealdb.com/images/category/beef.png',
          description: 'Beef is the culinary name for meat from cattle, particularly skeletal muscle. Humans have been eating beef since prehistoric times.[1] Beef is a source of high-quality protein and essential nutrients.[2]',
        },
        {
          id: '2', name: 'Chicken', thumbnail_url: 'https://www.themealdb.com/images/category/chicken.png',
          description: 'Chicken is a type of domesticated fowl, a subspecies of the red junglefowl. It is one of the most common and widespread domestic animals, with a total population of more than 19 billion as of 2011.[1] Humans commonly keep chickens as a source of food (consuming both their meat and eggs) and, more rarely, as pets.',
        },
        {
          id: '3', name: 'Dessert', thumbnail_url: 'https://www.themealdb.com/images/category/dessert.png',
          description: 'Dessert is a course that concludes a meal. The course usually consists of sweet foods, such as confections dishes or fruit, and possibly a beverage such as dessert wine or liqueur.',
        },
      ],
    },
  }
}
