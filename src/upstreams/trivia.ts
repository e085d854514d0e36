import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { htmlDecoded, integer, items, members, objects } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { failed, invalid, overLimit, type ResponseClass, rejected } from '../catalog/response-class.ts'
import { defaulted, otherNames } from '../catalog/shared-parameters.ts'
import { endpoint, path, type Upstream, type UpstreamResponse } from '../catalog/upstream.ts'

interface Wanted {
  amount: number
  category?: number
  difficulty?: string
  type?: string
}

/** The upstream's only limit: one request in this time, whatever it asks. */
const SPACING_SECONDS = 5

/** The most questions one request may ask for. */
const AMOUNT_MAX = 50

const round = record({
  response_code: required.integer('response_code', '0, or 1 when there are fewer questions than asked for: then none'),
  // Texts are HTML-encoded, categories too; blanks at their ends are the upstream's own.
  results: required.recordOfEach('results', 'Questions', {
    category: field.htmlDecoded('category', 'Name of the category'),
    type: field.text('type', 'multiple or boolean'),
    difficulty: field.text('difficulty', 'easy, medium or hard'),
    question: field.htmlDecoded('question', 'The question, plain text'),
    correct_answer: field.htmlDecoded('correct_answer', 'The right answer'),
    incorrect_answers: field.texts(
      ({ incorrect_answers }) => items(incorrect_answers).map(htmlDecoded),
      'Wrong answers: three, or one of a boolean question',
    ),
  }),
})

const trivia: Upstream = {
  displayName: 'Trivia',
  category: 'entertainment',
  description: 'Random quiz questions with right and wrong answers, by category, difficulty and type.',
  tags: ['trivia', 'quiz', 'questions', 'games'],
  keywords: ['quiz', 'question', 'answer', 'pub', 'game', 'knowledge', 'test'],
  tierRequired: 'developer',
  terms: {
    summary: 'Free, without a key; one request in 5 seconds. Questions under CC BY-SA 4.0.',
    url: 'https://opentdb.com/api_config.php',
    licence: 'https://creativecommons.org/licenses/by-sa/4.0/',
    attribution: 'Questions by Open Trivia Database (opentdb.com), CC BY-SA 4.0',
  },
  baseUrl: 'https://opentdb.com',
  caps: { concurrency: 1, rates: [{ max: 1, seconds: SPACING_SECONDS }] },
  // A static list, but it takes one of twelve requests a minute from the callers.
  probe: { request: { path: path`/api_category.php` }, everySeconds: 300 },
  // A session would tie the shared pool to one caller; another encoding would change every text.
  reservedParameters: ['token', 'encode'],
  classify: classifyResponseCode,
  endpoints: {
    '/questions': endpoint({
      description: 'Random trivia questions.',
      parameters: Type.Object({
        amount: defaulted(
          Type.Integer({
            minimum: 1,
            maximum: AMOUNT_MAX,
            default: 10,
            description: 'Number of questions',
          }),
        ),
        category: Type.Optional(
          Type.Integer({
            minimum: 9,
            maximum: 32,
            description:
              '9 general knowledge, 17 science, 18 computers, 21 sports, 22 geography, 23 history; default: every category',
          }),
        ),
        difficulty: Type.Optional(Type.Enum(['easy', 'medium', 'hard'], { description: 'Default: every difficulty' })),
        type: Type.Optional(
          Type.Enum(['multiple', 'boolean'], { description: 'Multiple choice or true and false; default: both' }),
        ),
      }),
      aliases: { amount: otherNames('count', 'amount') },
      data: round.schema,
      pool: {
        key: ({ category, difficulty, type }) => [category ?? '', difficulty ?? '', type ?? ''].join('/'),
        request: (filter) => questions({ ...filter, amount: AMOUNT_MAX }),
        items: (body) => {
          const found = items(members(body).results)
          return found.length > 0 ? found : undefined
        },
        take: ({ amount }) => amount,
        body: (results) => ({ response_code: 0, results }),
        seconds: lifetime.hour,
        unfillableSeconds: lifetime.day,
      },
      request: questions,
      map: ({ body }) => round.read(body) ?? invalid(),
      example: recordedQuestions(),
    }),
  },
}

export default trivia

/**
 * Failures come as 200 with a code: 2 wrong parameter, 3 and 4 session token, 5 too soon (also as
 * 429).
 */
function classifyResponseCode({ status, body }: UpstreamResponse): ResponseClass | undefined {
  const code = integer(members(body).response_code)
  // No waiting time is ever sent, but the spacing is known.
  if (status === 429 || code === 5) return overLimit(SPACING_SECONDS * 1_000)
  if (code === 2) return rejected()
  // 1 is an answer: no questions. Tokens are never sent, so 3 and 4 are as odd as an unknown code.
  return status === 200 && code !== null && code > 1 ? failed() : undefined
}

function questions(wanted: Wanted) {
  const { amount, category, difficulty, type } = wanted
  return { path: path`/api.php`, query: { amount, category, difficulty, type } }
}

function recordedQuestions() {
  return {
    parameters: { amount: 10 },
    // The recording names categories in words; a call has their numbers.
    responseFor: ({ amount, category, difficulty, type }: Wanted, response: unknown) => {
      if (category !== undefined) return undefined
      const fitting = objects(members(response).results).filter(
        (one) => (difficulty ?? one.difficulty) === one.difficulty && (type ?? one.type) === one.type,
      )
      return { response_code: 0, results: fitting.slice(0, amount) }
    },
    // biome-ignore format: as recorded
    response: {
      response_code: 0,
      results: [
        {
          type: 'multiple', difficulty: 'hard', category: 'Entertainment: Television',
          question: 'What was the date of original airing of the pilot episode of My Little Pony: Friendship is Magic?',
          correct_answer: 'October 10th, 2010', incorrect_answers: ['November 6th, 2010', 'April 14th, 1984', 'May 18th, 2015'],
        },
        {
          type: 'boolean', difficulty: 'medium', category: 'History',
          question: 'United States President Ronald Reagan was the first president to appoint a woman to the Supreme Court. ', correct_answer: 'True',
          incorrect_answers: ['False'],
        },
        {
          type: 'multiple', difficulty: 'medium', category: 'History',
          question: 'The Panama Canal was finished under the administration of which U.S. president?', correct_answer: 'Woodrow Wilson',
          incorrect_answers: ['Franklin Delano Roosevelt', 'Herbert Hoover', 'Theodore Roosevelt'],
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      response_code: 0,
      results: [
        {
          category: 'Entertainment: Television', type: 'multiple', difficulty: 'hard',
          question: 'What was the date of original airing of the pilot episode of My Little Pony: Friendship is Magic?',
          correct_answer: 'October 10th, 2010', incorrect_answers: ['November 6th, 2010', 'April 14th, 1984', 'May 18th, 2015'],
        },
        {
          category: 'History', type: 'boolean', difficulty: 'medium',
          question: 'United States President Ronald Reagan was the first president to appoint a woman to the Supreme Court. ', correct_answer: 'True',
          incorrect_answers: ['False'],
        },
        {
          category: 'History', type: 'multiple', difficulty: 'medium',
          question: 'The Panama Canal was finished under the administration of which U.S. president?', correct_answer: 'Woodrow Wilson',
          incorrect_answers: ['Franklin Delano Roosevelt', 'Herbert Hoover', 'Theodore Roosevelt'],
        },
      ],
    },
  }
}
