import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KnownFromReplies } from '../../src/admission/known-from-replies.ts'

const call = { slug: 'weather', mode: 'live' as const }
const sent = { times: { attempts: 1 } }

describe('answers', () => {
  test('an answer is known for as long as its reply said, or shortly while a call fetches it', (t) => {
    let now = 5_000
    t.mock.method(performance, 'now', () => now)
    const known = new KnownFromReplies()
    assert.equal(known.hasAnswer('a'), false)
    known.learn(call, 'a', { ...sent, freshMs: 60_000 })
    known.expectAnswer('a')
    known.expectAnswer('b')
    assert.deepEqual([known.hasAnswer('a'), known.hasAnswer('b')], [true, true])
    now += 1_000
    // The expectation did not shorten the life of what is known.
    assert.deepEqual([known.hasAnswer('a'), known.hasAnswer('b')], [true, false])
    now += 59_000
    assert.equal(known.hasAnswer('a'), false)
  })

  test('an answer is no longer expected when its call has failed, and a reply without this information changes nothing', () => {
    const known = new KnownFromReplies()
    known.expectAnswer('a')
    known.learn(call, 'a', sent)
    assert.equal(known.hasAnswer('a'), true)
    known.learn(call, 'a', { ...sent, code: 'UPSTREAM_ERROR' })
    assert.equal(known.hasAnswer('a'), false)
    // If the cache keeps a "not found", that is an answer.
    known.learn(call, 'a', { ...sent, code: 'UPSTREAM_NOT_FOUND', freshMs: 1_000 })
    assert.equal(known.hasAnswer('a'), true)
    known.learn(call, undefined, { ...sent, freshMs: 1_000 })
  })
})

describe('room', () => {
  test('half of the room that a reply tells of is used without tickets at a time, for a second', (t) => {
    let now = 5_000
    t.mock.method(performance, 'now', () => now)
    const known = new KnownFromReplies()
    const take = () => known.takeRoom('weather', 'shared')
    assert.equal(take(), undefined)
    known.learn(call, undefined, { ...sent, room: 5 })
    const [first, second] = [take(), take()]
    assert.ok(first && second)
    assert.equal(take(), undefined)
    // If the room grows, calls that are already running have no more room.
    known.learn(call, undefined, { ...sent, room: 5 })
    assert.equal(take(), undefined)
    first()
    assert.ok(take())
    second()
    now += 1_001
    assert.equal(take(), undefined)
    known.learn(call, undefined, { ...sent, room: 5 })
    assert.ok(take())
    known.learn(call, undefined, sent)
    assert.equal(take(), undefined)
  })

  test('the room of a cap is known only for its own bucket, and only from replies to calls that had a permit', () => {
    const known = new KnownFromReplies()
    known.learn({ ...call, providerKey: { id: 'a', bucket: 'key-a' } }, undefined, { ...sent, room: 4 })
    assert.equal(known.takeRoom('weather', 'shared'), undefined)
    assert.ok(known.takeRoom('weather', 'key-a'))
    known.learn({ ...call, mode: 'test' }, undefined, { ...sent, room: 4 })
    known.learn(call, undefined, { times: { attempts: 0 }, room: 4 })
    assert.equal(known.takeRoom('weather', 'shared'), undefined)
  })
})
