import { field, record, required } from '../catalog/fields.ts'
import { htmlDecoded, integer, items, members, objects } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { namesOf, optional, param } from '../catalog/parameters.ts'
import { failed, overLimit, type ResponseClass, rejected } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/trivia.json' with { type: 'json' }

interface Wanted {
  amount: number
  category?: number
  difficulty?: string
  type?: string
}

/** The upstream's only limit: one request in this time, whatever it requests, seconds. */
const SPACING_SECONDS = 5

/** Most questions of one request. */
const AMOUNT_MAX = 50

const round = record({
  response_code: required.integer('response_code', '0, or 1 if there are fewer questions than requested: then none'),
  // Texts are HTML-encoded, categories too; blanks at their ends are the upstream's own.
  results: required.recordOfEach('results', 'Questions', {
    category: field.htmlDecoded('category', 'Name of the category'),
    type: field.text('type', 'multiple or boolean'),
    difficulty: field.text('difficulty', 'easy, medium or hard'),
    question: field.htmlDecoded('question', 'The question, plain text'),
    correct_answer: field.htmlDecoded('correct_answer', 'The right answer'),
    incorrect_answers: required.texts(
      ({ incorrect_answers: wrong }) => (Array.isArray(wrong) ? wrong.map(htmlDecoded) : wrong),
      'Wrong answers: three, or one of a boolean question',
    ),
  }),
})

export default upstream({
  displayName: 'Trivia',
  category: 'entertainment',
  description: 'Random quiz questions with right and wrong answers, by category, difficulty and type.',
  tags: ['trivia', 'quiz', 'questions', 'games'],
  keywords: words('quiz question answer pub game knowledge test'),
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
  reservedParameters: words('token encode'),
  classify: classifyResponseCode,
  endpoints: {
    '/questions': endpoint({
      description: 'Random trivia questions.',
      parameters: {
        amount: param.integer('Number of questions', {
          minimum: 1,
          maximum: AMOUNT_MAX,
          default: 10,
          aliases: namesOf.count,
        }),
        category: optional(
          param.integer(
            '9 general knowledge, 17 science, 18 computers, 21 sports, 22 geography, 23 history; default: every category',
            { minimum: 9, maximum: 32 },
          ),
        ),
        difficulty: optional(param.oneOf(['easy', 'medium', 'hard'], 'Default: every difficulty')),
        type: optional(param.oneOf(['multiple', 'boolean'], 'Multiple choice or true and false; default: both')),
      },
      data: round,
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
        tooFewItemsSeconds: lifetime.day,
      },
      request: questions,
      example: { ...recordings['/questions'], responseFor: recordedQuestions },
    }),
  },
})

/**
 * Failures come as 200 with a code: 2 wrong parameter, 3 and 4 session token, 5 too soon (also as
 * 429).
 */
function classifyResponseCode({ status, body }: UpstreamResponse): ResponseClass | undefined {
  const code = integer(members(body).response_code)
  // The upstream never sends a waiting time, but the required pause is known.
  if (status === 429 || code === 5) return overLimit(SPACING_SECONDS * 1_000)
  if (code === 2) return rejected()
  // 1 is an answer: no questions. Tokens are never sent, so 3 and 4 are as odd as an unknown code.
  return status === 200 && code !== null && code > 1 ? failed() : undefined
}

function questions(wanted: Wanted) {
  const { amount, category, difficulty, type } = wanted
  return { path: path`/api.php`, query: { amount, category, difficulty, type } }
}

/** The recording names categories in words, but calls have their numbers. */
function recordedQuestions({ amount, category, difficulty, type }: Wanted, response: unknown) {
  if (category !== undefined) return undefined
  const fitting = objects(members(response).results).filter(
    (one) => (difficulty ?? one.difficulty) === one.difficulty && (type ?? one.type) === one.type,
  )
  return { response_code: 0, results: fitting.slice(0, amount) }
}
