import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import trivia from '../../src/upstreams/trivia.ts'
import { classifyResponse, interpretAnswers } from '../../workers/upstream/interpret.ts'
import { withDefaults } from '../support/upstream-call.ts'

const context = { now: Date.parse('2026-10-01T12:00:00Z') }
const questions = trivia.endpoints['/questions']
assert.ok(questions?.pool)
const pool = questions.pool

function interpreted(status: number, body: unknown) {
  assert.ok(questions)
  return interpretAnswers({ upstream: trivia, endpoint: questions }, [{ status, headers: {}, body }], {
    parameters: withDefaults(questions, { amount: 10 }),
    context,
  })
}

function answered(status: number, body: unknown) {
  const result = interpreted(status, body)
  return 'data' in result ? result.data : result.responseClass.code
}

const nato = {
  type: 'multiple',
  difficulty: 'easy',
  category: 'Science &amp; Nature',
  question: 'What word represents the letter &#039;T&#039; in the NATO phonetic alphabet? ',
  correct_answer: 'Tango &ldquo;T&rdquo;',
  incorrect_answers: ['Target', 'Le&oacute;n', '&quot;Taxi&quot;'],
}

test('the recorded questions map to the recorded data, in its key order', () => {
  const data = answered(200, questions.example.response)
  assert.equal(JSON.stringify(data), JSON.stringify(questions.example.data))
})

test('all texts, also the category, are decoded with the full table of HTML, and nothing is trimmed', () => {
  assert.deepEqual(answered(200, { response_code: 0, results: [nato] }), {
    response_code: 0,
    results: [
      {
        category: 'Science & Nature',
        type: 'multiple',
        difficulty: 'easy',
        question: "What word represents the letter 'T' in the NATO phonetic alphabet? ",
        correct_answer: 'Tango “T”',
        incorrect_answers: ['Target', 'León', '"Taxi"'],
      },
    ],
  })
})

test('a text is decoded once: an encoded ampersand does not start another reference', () => {
  const body = { response_code: 0, results: [{ ...nato, question: 'What is &amp;lt; in HTML?' }] }
  const data = answered(200, body)
  assert.ok(typeof data === 'object' && Array.isArray(data.results))
  assert.equal(data.results[0].question, 'What is &lt; in HTML?')
})

test('code 1, fewer questions than requested, is a success with an empty list', () => {
  assert.deepEqual(answered(200, { response_code: 1, results: [] }), { response_code: 1, results: [] })
})

test('code 2 with status 200, an invalid parameter, is UPSTREAM_REJECTED', () => {
  assert.equal(answered(200, { response_code: 2, results: [] }), 'UPSTREAM_REJECTED')
})

test('codes 3 and 4, a session token that is unknown or used up, are UPSTREAM_ERROR', () => {
  assert.equal(answered(200, { response_code: 3, results: [] }), 'UPSTREAM_ERROR')
  assert.equal(answered(200, { response_code: 4, results: [] }), 'UPSTREAM_ERROR')
})

test('a request that comes too soon is UPSTREAM_RATE_LIMITED for 5 seconds, as 429 and as 200 with code 5', () => {
  for (const [status, body] of [
    [429, { response_code: 5, results: [] }],
    [200, { response_code: 5, results: [] }],
    [429, undefined],
  ] as const) {
    const result = interpreted(status, body)
    assert.ok('responseClass' in result)
    assert.equal(result.responseClass.code, 'UPSTREAM_RATE_LIMITED')
    assert.equal(result.responseClass.retryAfterMs, 5_000)
  }
})

test('an answer without code or results is UPSTREAM_INVALID_RESPONSE', () => {
  for (const body of [{}, { response_code: 0 }, { results: [] }, [], null, undefined]) {
    assert.equal(answered(200, body), 'UPSTREAM_INVALID_RESPONSE')
  }
})

test('the list of categories, which the probe gets and which has no code, shows that the upstream works', () => {
  const body = { trivia_categories: [{ id: 9, name: 'General Knowledge' }] }
  assert.equal(
    classifyResponse({ upstream: trivia, endpoint: undefined }, { status: 200, headers: {}, body }),
    undefined,
  )
})

test('scheduled probes use few requests of the cap', () => {
  assert.ok(trivia.probe.everySeconds >= 300)
})

test('a plain request has exactly the amount of the call, and only the filters that are set', () => {
  assert.deepEqual(questions.request(withDefaults(questions, { amount: 7 }), context), {
    path: '/api.php',
    query: { amount: 7, category: undefined, difficulty: undefined, type: undefined },
  })
  assert.deepEqual(
    questions.request(
      withDefaults(questions, { amount: 3, category: 17, difficulty: 'hard', type: 'boolean' }),
      context,
    ),
    {
      path: '/api.php',
      query: { amount: 3, category: 17, difficulty: 'hard', type: 'boolean' },
    },
  )
})

test('a pool is filled with 50 questions of its filter, whatever the amount of the call', () => {
  assert.deepEqual(pool.request({ amount: 3, category: 17, difficulty: 'hard' }), {
    path: '/api.php',
    query: { amount: 50, category: 17, difficulty: 'hard', type: undefined },
  })
})

test('calls share a pool when their filters are equal, whatever the amount', () => {
  assert.equal(pool.key({ amount: 1, category: 9 }), pool.key({ amount: 20, category: 9 }))
  const keys = [
    {},
    { category: 9 },
    { category: 21 },
    { difficulty: 'easy' },
    { type: 'boolean' },
    { difficulty: 'easy', type: 'boolean' },
  ].map(pool.key)
  assert.equal(new Set(keys).size, keys.length)
})

test('a filter with fewer than 50 questions fills no pool, and the gateway remembers this for a day', () => {
  assert.equal(questions.pool?.tooFewItemsSeconds, 86_400)
  assert.equal(pool.items({ response_code: 1, results: [] }), undefined)
  assert.equal(pool.items(null), undefined)
  assert.deepEqual(pool.items({ response_code: 0, results: [nato] }), [nato])
})

test('questions from a pool have the form of the upstream’s own answer', () => {
  assert.equal(pool.take({ amount: 2 }), 2)
  assert.equal(pool.take(withDefaults(questions, {})), 10)
  assert.deepEqual(pool.body([nato]), { response_code: 0, results: [nato] })
  assert.equal(pool.seconds, 3_600)
})

test('random questions are not stored', () => {
  assert.equal(questions.cache, undefined)
})

test('amount is 1 to 50, category 9 to 32, and difficulty and type have only the known values', () => {
  const accepts = (parameters: unknown) => Value.Check(questions.parameters, parameters)
  for (const good of [{}, { amount: 1 }, { amount: 50 }, { category: 9 }, { category: 32 }, { difficulty: 'hard' }]) {
    assert.ok(accepts(good), JSON.stringify(good))
  }
  for (const bad of [
    { amount: 0 },
    { amount: 51 },
    { amount: 1.5 },
    { category: 8 },
    { category: 33 },
    { difficulty: 'Hard' },
    { type: 'single' },
  ]) {
    assert.ok(!accepts(bad), JSON.stringify(bad))
  }
})

test('a caller can send neither a session token nor another encoding', () => {
  assert.ok(trivia.reservedParameters?.includes('token'))
  assert.ok(trivia.reservedParameters?.includes('encode'))
})

test('questions whose wrong answers cannot be read are left out', () => {
  const question = (incorrect_answers: unknown) => ({ question: 'Q', correct_answer: 'A', incorrect_answers })
  const read = (answers: unknown[]) => answered(200, { response_code: 0, results: answers.map(question) })
  assert.equal(Object(read([['B', 'C'], [{ text: 'B' }], 'B', undefined])).results.length, 1)
  assert.equal(read([[{ text: 'B' }], { b: 1 }]), 'UPSTREAM_INVALID_RESPONSE')
})
