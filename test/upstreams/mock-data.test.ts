import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { failed, invalid, notFound } from '../../src/catalog/response-class.ts'
import mockData from '../../src/upstreams/mock-data.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const posts = mockData.endpoints['/posts'] as Endpoint
const users = mockData.endpoints['/users'] as Endpoint
const comments = mockData.endpoints['/comments'] as Endpoint

function interpret(endpoint: Endpoint, status: number, body: unknown) {
  return interpretAnswers({ upstream: mockData, endpoint }, [{ status, headers: {}, body }], {
    parameters: { id: 1 },
    context: { now: 0 },
  })
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [posts, users, comments]) {
    assert.deepEqual(interpret(endpoint, 200, endpoint.example.response), { data: endpoint.example.data })
  }
})

test('a body of {} for unknown ids is UPSTREAM_NOT_FOUND, not an empty success', () => {
  for (const endpoint of [posts, users]) {
    assert.deepEqual(interpret(endpoint, 404, {}), { responseClass: notFound() })
    assert.deepEqual(interpret(endpoint, 200, {}), { responseClass: notFound() })
  }
})

test('a 200 that is no record is UPSTREAM_INVALID_RESPONSE', () => {
  for (const endpoint of [posts, users]) {
    for (const body of [[], null, 'post', { id: '1' }]) {
      assert.deepEqual(interpret(endpoint, 200, body), { responseClass: invalid() })
    }
  }
})

test('a 5xx is UPSTREAM_ERROR', () => {
  assert.deepEqual(interpret(posts, 503, undefined), { responseClass: failed() })
})

test('ids are whole numbers from 1 to 100 for posts and to 10 for users', () => {
  const post = Compile(posts.parameters)
  const user = Compile(users.parameters)
  assert.ok(post.Check({ id: 1 }) && post.Check({ id: 100 }) && user.Check({ id: 10 }))
  for (const id of [0, 101, 1.5, undefined]) assert.ok(!post.Check({ id }), `${id}`)
  assert.ok(!user.Check({ id: 11 }))
})

test('an id is a segment of the path', () => {
  assert.deepEqual(posts.request({ id: 42 }, { now: 0 }), { path: '/posts/42' })
  assert.deepEqual(users.request({ id: 7 }, { now: 0 }), { path: '/users/7' })
})

test('coordinates, which the upstream writes as texts, are numbers, and the city is also a member outside the address', () => {
  const result = interpret(users, 200, { id: 2, address: { city: 'Wisokyburgh', geo: { lat: '-43.9509', lng: 'x' } } })
  assert.ok('data' in result)
  assert.equal(result.data.city, 'Wisokyburgh')
  assert.deepEqual(result.data.address, {
    street: null,
    suite: null,
    city: 'Wisokyburgh',
    zipcode: null,
    lat: -43.9509,
    lng: null,
  })
})

test('line breaks of a post are kept', () => {
  const result = interpret(posts, 200, { userId: 1, id: 1, title: 'a', body: 'one\ntwo' })
  assert.deepEqual(result, { data: { id: 1, body: 'one\ntwo', title: 'a', userId: 1 } })
})

test('all 500 comments are in a single answer and are counted', () => {
  const body = Array.from({ length: 500 }, (_, index) => ({ postId: 1, id: index + 1, name: '', email: '', body: '' }))
  const result = interpret(comments, 200, body)
  assert.ok('data' in result)
  assert.equal(result.data.count, 500)
  assert.equal((result.data.comments as unknown[]).length, 500)
})

test('comments that are no list are UPSTREAM_INVALID_RESPONSE', () => {
  assert.deepEqual(interpret(comments, 200, {}), { responseClass: invalid() })
})
