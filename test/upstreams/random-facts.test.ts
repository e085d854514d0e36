import assert from 'node:assert/strict'
import { test } from 'node:test'
import randomFacts from '../../src/upstreams/random-facts.ts'
import { addressOf, codeOf, dataOf, endpointAt } from '../support/upstream-call.ts'

const paths = ['/random', '/today']

test('English facts are requested', () => {
  assert.equal(addressOf(randomFacts, '/random', {}), 'https://uselessfacts.jsph.pl/api/v2/facts/random?language=en')
  assert.equal(addressOf(randomFacts, '/today', {}), 'https://uselessfacts.jsph.pl/api/v2/facts/today?language=en')
})

test('JSON is requested', () => {
  assert.equal(randomFacts.headers?.accept, 'application/json')
})

test('a random fact is never cached, and the fact of the day is cached for an hour', () => {
  assert.equal(endpointAt(randomFacts, '/random').cache, undefined)
  assert.equal(endpointAt(randomFacts, '/today').cache?.seconds, 3_600)
})

test('quotes, backticks and double spaces of a text do not change', () => {
  const text = 'A "jiffy"  is an actual unit of time: 1/100th of a `second`.'
  for (const path of paths) assert.equal(dataOf(randomFacts, path, { body: { text } }).text, text)
})

test('all six members are always present', () => {
  for (const path of paths) {
    assert.deepEqual(dataOf(randomFacts, path, { body: { text: 'So it is.', source: 7 } }), {
      id: null,
      text: 'So it is.',
      source: null,
      source_url: null,
      language: null,
      permalink: null,
    })
  }
})

test('an answer without a text is UPSTREAM_INVALID_RESPONSE', () => {
  for (const path of paths) {
    for (const body of [{}, { id: 'a' }, [], null, 'fact', undefined]) {
      assert.equal(codeOf(randomFacts, path, { body }), 'UPSTREAM_INVALID_RESPONSE')
    }
  }
})

test('failures, whose bodies are unknown, are judged by their status', () => {
  for (const path of paths) {
    assert.equal(codeOf(randomFacts, path, { status: 500 }), 'UPSTREAM_ERROR')
    assert.equal(codeOf(randomFacts, path, { status: 429 }), 'UPSTREAM_RATE_LIMITED')
    assert.equal(codeOf(randomFacts, path, { status: 404 }), 'UPSTREAM_ERROR')
  }
})

test('the description warns of doubtful and crude texts', () => {
  assert.match(randomFacts.description, /doubtful.*crude/)
})
