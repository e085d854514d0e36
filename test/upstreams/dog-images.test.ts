import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { failed, invalid, notFound } from '../../src/catalog/response-class.ts'
import dogImages from '../../src/upstreams/dog-images.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const random = dogImages.endpoints['/random'] as Endpoint
const breed = dogImages.endpoints['/breed'] as Endpoint

function interpret(status: number, body: unknown, endpoint = breed) {
  return interpretAnswers({ upstream: dogImages, endpoint }, [{ status, headers: {}, body }], {
    parameters: { breed: 'hound' },
    context: { now: 0 },
  })
}

function pictureData(imageUrl: string) {
  const result = interpret(200, { status: 'success', message: imageUrl })
  assert.ok('data' in result)
  return result.data
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [random, breed]) {
    assert.deepEqual(interpret(200, endpoint.example.response, endpoint), { data: endpoint.example.data })
  }
})

test('an unknown breed or sub-breed is UPSTREAM_NOT_FOUND', () => {
  for (const which of ['main', 'sub']) {
    const message = `Breed not found (${which} breed does not exist)`
    assert.deepEqual(interpret(404, { status: 'error', message, code: 404 }), { responseClass: notFound() })
  }
})

test('the answer of a missing route is UPSTREAM_ERROR, and not an unknown breed', () => {
  const message = 'No route found for "GET http://dog.ceo/api/breed/hound" with code: 0'
  assert.deepEqual(interpret(404, { status: 'error', message, code: 404 }), { responseClass: failed() })
})

test('a back end that is down is UPSTREAM_ERROR', () => {
  const message = 'Server error: `GET https://api.dog.ceo/breeds/list/all` resulted in a `502 Bad Gateway` response'
  assert.deepEqual(interpret(500, { status: 'error', message, code: 500 }), { responseClass: failed() })
})

test('the text of an error is never a picture, even with status 200', () => {
  const message = 'Breed not found (main breed does not exist)'
  assert.deepEqual(interpret(200, { status: 'error', message, code: 404 }), { responseClass: notFound() })
  assert.deepEqual(interpret(200, { status: 'error', message, code: 500 }), { responseClass: failed() })
  assert.deepEqual(interpret(200, { status: 'success', message }), { responseClass: invalid() })
})

test('a 200 of another shape is UPSTREAM_INVALID_RESPONSE', () => {
  for (const body of [{}, [], null, { status: 'success' }, { message: 'https://images.dog.ceo/breeds/pug/1.jpg' }]) {
    assert.deepEqual(interpret(200, body), { responseClass: invalid() })
  }
})

test('a breed without sub-breeds has an empty list, and a file name with a dash does not count as a sub-breed', () => {
  const data = pictureData('https://images.dog.ceo/breeds/pug/n02110958-1975.jpg')
  assert.deepEqual([data.breed, data.sub_breed], ['pug', null])
})

test('a picture outside the breed folders has no breed', () => {
  const data = pictureData('https://images.dog.ceo/other/1.jpg')
  assert.deepEqual([data.breed, data.sub_breed], [null, null])
})

test('a breed is sent trimmed and in lower case', () => {
  const completed = breed.complete?.({ breed: ' Hound ' }, { now: 0 })
  assert.deepEqual(completed, { breed: 'hound' })
})

test('a sub-breed is a path segment of its own', () => {
  const context = { now: 0 }
  assert.deepEqual(breed.request({ breed: 'hound' }, context), { path: '/api/breed/hound/images/random' })
  assert.deepEqual(breed.request({ breed: 'hound/afghan' }, context), { path: '/api/breed/hound/afghan/images/random' })
})

test('only letters, and a slash before a sub-breed, pass the schema', () => {
  const accepts = Compile(breed.parameters)
  for (const name of ['hound', 'Hound', ' hound ', 'hound/afghan']) assert.ok(accepts.Check({ breed: name }), name)
  const refused = ['', ' ', '..', 'hound/..', '/hound', 'hound/', 'a/b/c', 'hound-afghan', 'afghan hound', 'hound?x=1']
  for (const name of refused) assert.ok(!accepts.Check({ breed: name }), name)
})

test('no picture is stored, because every call may give another, and only an unknown breed is stored', () => {
  assert.equal(random.cache, undefined)
  assert.deepEqual(breed.cache, { seconds: 0, notFoundSeconds: 3_600 })
})
