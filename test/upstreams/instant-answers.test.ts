import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import instantAnswers from '../../src/upstreams/instant-answers.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const search = instantAnswers.endpoints['/search'] ?? assert.fail()
const context = { now: 0 }

function interpret(status: number, body: unknown, headers = {}) {
  return interpretAnswers({ upstream: instantAnswers, endpoint: search }, [{ status, headers, body }], {
    parameters: { q: 'cat' },
    context,
  })
}

function dataOf(body: unknown, status = 200) {
  const result = interpret(status, body)
  return 'data' in result ? result.data : assert.fail(result.responseClass.code)
}

function classOf(status: number, body: unknown, headers = {}) {
  const result = interpret(status, body, headers)
  return 'responseClass' in result ? result.responseClass : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

/** What is answered when nothing is known for the query. */
const nothing = {
  Abstract: '',
  AbstractSource: '',
  AbstractText: '',
  AbstractURL: '',
  Answer: '',
  AnswerType: '',
  Definition: '',
  DefinitionSource: '',
  DefinitionURL: '',
  Entity: '',
  Heading: '',
  Image: '',
  ImageHeight: 0,
  ImageIsLogo: '',
  ImageWidth: '',
  Infobox: '',
  Redirect: '',
  RelatedTopics: [],
  Results: [],
  Type: '',
  meta: { name: 'Just Another Test' },
}

test('the recorded answer maps to the recorded data', () => {
  const { response, data } = search.example
  assert.deepEqual(interpret(200, response), { data })
})

test('202 with a complete body is a success', () => {
  assert.equal(dataOf(search.example.response, 202).heading, 'Rust (programming language)')
})

test('202 without JSON is UPSTREAM_RATE_LIMITED, because the upstream sends a challenge', () => {
  const responseClass = classOf(202, undefined)
  assert.equal(responseClass.code, 'UPSTREAM_RATE_LIMITED')
  assert.equal(responseClass.retryAfterMs, 60_000)
})

test('a query is requested without HTML and redirects', () => {
  const parameters = search.complete?.({ q: ' Rust programming language ' }, context) ?? {}
  assert.deepEqual(search.request(parameters, context), {
    path: '/',
    query: { q: 'Rust programming language', format: 'json', no_html: '1', no_redirect: '1' },
  })
})

test('blank queries and queries of 500 characters are refused', () => {
  assert.throws(() => search.complete?.({ q: '  ' }, context), InvalidParameter)
  assert.ok(!Value.Check(search.parameters, { q: '' }))
  assert.ok(Value.Check(search.parameters, { q: 'x'.repeat(499) }))
  assert.ok(!Value.Check(search.parameters, { q: 'x'.repeat(500) }))
})

test('an answer about an unknown thing is a success in which every text is empty', () => {
  assert.deepEqual(dataOf(nothing, 202), {
    type: '',
    heading: '',
    abstract: '',
    abstract_url: '',
    abstract_source: '',
    image: '',
    answer: '',
    answer_type: '',
    definition: '',
    definition_url: '',
    entity: '',
    redirect: '',
    related_topics: [],
    results: [],
  })
})

test('paths of pictures become URLs, and URLs do not change', () => {
  assert.equal(dataOf({ ...nothing, Image: '/i/832f249b.png' }).image, 'https://duckduckgo.com/i/832f249b.png')
  assert.equal(dataOf({ ...nothing, Image: 'https://x.example/a.png' }).image, 'https://x.example/a.png')
  const topics = dataOf({
    ...nothing,
    RelatedTopics: [{ Text: 'a', FirstURL: 'u', Icon: { URL: '/i/a.png' } }],
  }).related_topics
  assert.deepEqual(topics, [{ text: 'a', url: 'u', image: 'https://duckduckgo.com/i/a.png', group: null }])
})

test('related topics in groups become a single list, each with the name of its group', () => {
  const RelatedTopics = [
    { Text: 'plain', FirstURL: 'u1', Icon: { URL: '' } },
    {
      Name: 'Animals',
      Topics: [{ Text: 'one', FirstURL: 'u2', Icon: { URL: '' } }, { Text: 'two', FirstURL: 'u3' }, null],
    },
  ]
  assert.deepEqual(dataOf({ ...nothing, Type: 'D', RelatedTopics }).related_topics, [
    { text: 'plain', url: 'u1', image: '', group: null },
    { text: 'one', url: 'u2', image: '', group: 'Animals' },
    { text: 'two', url: 'u3', image: null, group: 'Animals' },
  ])
})

test('an answer that is an object is null, not a failure', () => {
  const data = dataOf({ ...nothing, Type: 'E', AnswerType: 'calc', Answer: { from: 'calculator', result: '' } })
  assert.equal(data.answer, null)
  assert.equal(data.answer_type, 'calc')
})

test('sizes and infoboxes of any type are ignored', () => {
  assert.deepEqual(dataOf({ ...nothing, ImageHeight: '', ImageIsLogo: 0, Infobox: { content: [] } }), dataOf(nothing))
})

test('if the abstract is missing, it is read from the abstract with markup', () => {
  assert.equal(dataOf({ ...nothing, Abstract: 'long', AbstractText: '' }).abstract, 'long')
  assert.equal(dataOf({ ...nothing, Abstract: '<b>long</b>', AbstractText: 'long' }).abstract, 'long')
})

test('a body that is no instant answer is invalid', () => {
  for (const body of [{}, [], { Type: null }]) assert.equal(classOf(200, body).code, 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(classOf(200, undefined).code, 'UPSTREAM_INVALID_RESPONSE')
})

test('a callback, which would wrap the answer, is reserved', () => {
  assert.ok(instantAnswers.reservedParameters?.includes('callback'))
})

test('failures and limits by status keep their meaning', () => {
  assert.equal(classOf(503, undefined).code, 'UPSTREAM_ERROR')
  assert.equal(classOf(429, undefined, { 'retry-after': '5' }).retryAfterMs, 5_000)
})

test('an abstract is stored for a day, an empty answer for an hour, and a computed answer is not stored', () => {
  const seconds = search.cache?.seconds
  assert.ok(typeof seconds === 'function')
  const of = (type: string, abstract: string | null) => seconds({ q: 'x' }, { type, abstract }, { now: 0 })
  assert.deepEqual(
    [of('A', 'Rust is'), of('', ''), of('D', ''), of('', null), of('E', '')],
    [86_400, 3_600, 3_600, 3_600, 0],
  )
})

test('an answer that is a number is its text', () => {
  assert.equal(dataOf({ ...nothing, Answer: 3 }).answer, '3')
  assert.equal(dataOf({ ...nothing, Answer: 0.5 }).answer, '0.5')
  assert.equal(dataOf({ ...nothing, Heading: 42, Definition: 7, AbstractText: 1 }).abstract, '1')
  assert.equal(dataOf({ ...nothing, Answer: true }).answer, null)
  assert.equal(dataOf({ ...nothing, Answer: [3] }).answer, null)
})

test('an answer whose related topics or results cannot be read is invalid, and not an answer without them', () => {
  for (const name of ['RelatedTopics', 'Results'])
    for (const list of [{ 0: {} }, ['a']])
      assert.equal(classOf(200, { ...nothing, [name]: list }).code, 'UPSTREAM_INVALID_RESPONSE', name)
})

test('a picture without protocol keeps its host', () => {
  const body = { ...nothing, Image: '//duckduckgo.com/i/a.png', RelatedTopics: [{ Icon: { URL: 'i/b.png' } }] }
  const { image, related_topics: topics } = dataOf(body)
  assert.equal(image, 'https://duckduckgo.com/i/a.png')
  assert.deepEqual(topics, [{ text: null, url: null, image: 'https://duckduckgo.com/i/b.png', group: null }])
})
