import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import techForum from '../../src/upstreams/tech-forum.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const context = { now: Date.parse('2026-10-01T12:00:00Z') }
const topstories = techForum.endpoints['/topstories']
const story = techForum.endpoints['/story']
assert.ok(topstories && story)

function answered(endpoint: typeof story, status: number, body: unknown) {
  assert.ok(endpoint)
  const result = interpretAnswers({ upstream: techForum, endpoint }, [{ status, headers: {}, body }], {
    parameters: { id: String(Object(body).id ?? '8863') },
    context,
  })
  return 'data' in result ? result.data : result.responseClass.code
}

test('the recorded list of ids, a bare array, becomes an object', () => {
  assert.deepEqual(answered(topstories, 200, topstories.example.response), topstories.example.data)
  assert.deepEqual(topstories.request({}, context), { path: '/v0/topstories.json' })
})

test('the recorded story maps to the recorded data', () => {
  assert.deepEqual(answered(story, 200, story.example.response), story.example.data)
})

test('the id is a segment of the path with the suffix .json', () => {
  assert.deepEqual(story.request({ id: '8863' }, context), { path: '/v0/item/8863.json' })
})

test('an unknown id, 200 with the body null, is UPSTREAM_NOT_FOUND', () => {
  assert.equal(answered(story, 200, null), 'UPSTREAM_NOT_FOUND')
})

test('the 401 of an item that cannot be read now is UPSTREAM_ERROR, because there is no key that it could refuse', () => {
  assert.equal(answered(story, 401, { error: 'Permission denied' }), 'UPSTREAM_ERROR')
})

test('an answer that is not JSON is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(answered(story, 200, undefined), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(topstories, 200, undefined), 'UPSTREAM_INVALID_RESPONSE')
})

test('an answer of another shape is UPSTREAM_INVALID_RESPONSE', () => {
  assert.equal(answered(story, 200, { error: 'x' }), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(story, 200, [1]), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(answered(topstories, 200, null), 'UPSTREAM_INVALID_RESPONSE')
})

test('another item than the requested one is UPSTREAM_INVALID_RESPONSE', () => {
  const other = [{ status: 200, headers: {}, body: story.example.response }]
  const read = interpretAnswers({ upstream: techForum, endpoint: story }, other, { parameters: { id: '1' }, context })
  assert.equal('responseClass' in read && read.responseClass.code, 'UPSTREAM_INVALID_RESPONSE')
})

test('a text post has no url and keeps its HTML', () => {
  const data = answered(story, 200, {
    by: 'tel',
    id: 121003,
    text: '<i>or</i> HN: the Next Iteration<p>I get the impression&#x27;',
    time: 1203647620,
    title: 'Ask HN: The Arc Effect',
    type: 'story',
  })
  assert.ok(typeof data === 'object')
  assert.equal(data.url, null)
  assert.equal(data.text, '<i>or</i> HN: the Next Iteration<p>I get the impression&#x27;')
  assert.deepEqual(data.kids, [])
  assert.equal(data.descendants, null)
})

test('an empty url or text of a job is null', () => {
  const data = answered(story, 200, { id: 192327, type: 'job', url: '', text: '', title: 'Justin.tv is looking' })
  assert.ok(typeof data === 'object')
  assert.equal(data.url, null)
  assert.equal(data.text, null)
  assert.equal(data.type, 'job')
})

test('a deleted item has no author', () => {
  assert.deepEqual(answered(story, 200, { deleted: true, id: 9, time: 1175714200, type: 'comment' }), {
    by: null,
    id: 9,
    url: null,
    time: 1175714200,
    type: 'comment',
    title: null,
    score: null,
    descendants: null,
    text: null,
    parent: null,
    kids: [],
    dead: false,
    deleted: true,
    discussion_url: 'https://news.ycombinator.com/item?id=9',
  })
})

test('a dead item is marked as dead', () => {
  const data = answered(story, 200, { id: 10, type: 'story', dead: true })
  assert.ok(typeof data === 'object')
  assert.equal(data.dead, true)
  assert.equal(data.deleted, false)
})

test('a comment has a parent, a text and no title', () => {
  const data = answered(story, 200, { by: 'norvig', id: 2921983, parent: 2921506, text: 'Aw shucks', type: 'comment' })
  assert.ok(typeof data === 'object')
  assert.equal(data.parent, 2921506)
  assert.equal(data.text, 'Aw shucks')
  assert.equal(data.title, null)
})

test('members that are not known are ignored', () => {
  const body = { ...(story.example.response as object), newest: { thing: 1 } }
  assert.deepEqual(answered(story, 200, body), story.example.data)
})

test('an id is one to ten digits', () => {
  for (const id of ['8863', '0', '9999999999']) assert.ok(Value.Check(story.parameters, { id }), id)
  for (const id of ['', '12345678901', '-1', '1.5', '1e3', '../1', '8863.json', '٣']) {
    assert.ok(!Value.Check(story.parameters, { id }), id)
  }
})

test('leading zeros of an id are dropped', () => {
  assert.deepEqual(story.complete?.({ id: '0008863' }, context), { id: '8863' })
  assert.deepEqual(story.complete?.({ id: '000' }, context), { id: '0' })
})

test('options of the database that change authentication or the answer cannot be sent', () => {
  for (const name of ['auth', 'print', 'shallow', 'callback']) {
    assert.ok(techForum.reservedParameters?.includes(name), name)
  }
})
