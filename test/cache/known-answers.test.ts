import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KnownAnswers } from '../../src/cache/known-answers.ts'

test('an answer is known for as long as its reply said, or shortly while a call fetches it', (t) => {
  let now = 5_000
  t.mock.method(performance, 'now', () => now)
  const answers = new KnownAnswers()
  assert.equal(answers.has('a'), false)
  answers.learn('a', { freshMs: 60_000 })
  answers.expect('a')
  answers.expect('b')
  assert.deepEqual([answers.has('a'), answers.has('b')], [true, true])
  now += 1_000
  // The expectation did not shorten the life of what is known.
  assert.deepEqual([answers.has('a'), answers.has('b')], [true, false])
  now += 59_000
  assert.equal(answers.has('a'), false)
})

test('an answer whose call failed is not expected any more; a reply that says nothing changes nothing', () => {
  const answers = new KnownAnswers()
  answers.expect('a')
  answers.learn('a', {})
  assert.equal(answers.has('a'), true)
  answers.learn('a', { code: 'UPSTREAM_ERROR' })
  assert.equal(answers.has('a'), false)
  // If the cache keeps a "not found", that is an answer.
  answers.learn('a', { code: 'UPSTREAM_NOT_FOUND', freshMs: 1_000 })
  assert.equal(answers.has('a'), true)
  answers.learn(undefined, { freshMs: 1_000 })
})
