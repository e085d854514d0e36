import { field, record, required } from '../catalog/fields.ts'
import { isObject, objects } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { param } from '../catalog/parameters.ts'
import { notFound } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/mock-data.json' with { type: 'json' }

/** The data never change. */
const forGood = {
  seconds: lifetime.day,
  staleWhileRevalidateSeconds: lifetime.week,
  staleIfErrorSeconds: lifetime.month,
}

const post = record({
  id: required.integer('id', 'Number of the post, 1 to 100'),
  body: field.text('body', 'Text of the post, placeholder Latin'),
  title: field.text('title', 'Title of the post, placeholder Latin'),
  userId: field.integer('userId', 'Number of the author, 1 to 10'),
})

const user = record({
  id: required.integer('id', 'Number of the user, 1 to 10'),
  city: field.text('address.city', 'City of the address'),
  name: field.text('name', 'Full name, invented'),
  email: field.text('email', 'Email address, invented'),
  phone: field.text('phone', 'Telephone number, invented'),
  username: field.text('username', 'Log-in name, invented'),
  website: field.text('website', 'Domain, invented'),
  company: field.text('company.name', 'Name of the company, invented'),
  address: field.record('address', 'Postal address, invented', {
    street: field.text('street', 'Name of the street'),
    suite: field.text('suite', 'Apartment or suite'),
    city: field.text('city', 'Name of the city'),
    zipcode: field.text('zipcode', 'ZIP code'),
    lat: field.numeric('geo.lat', 'Degrees north'),
    lng: field.numeric('geo.lng', 'Degrees east'),
  }),
})

const all = record({
  count: required.integer(({ comments }) => objects(comments).length, 'Number of comments in the answer'),
  comments: required.records('comments', 'Comments', {
    id: field.integer('id', 'Number of the comment, 1 to 500'),
    postId: field.integer('postId', 'Number of the post it belongs to'),
    name: field.text('name', 'Title of the comment'),
    email: field.text('email', 'Email address of the author, invented'),
    body: field.text('body', 'Text of the comment, placeholder Latin'),
  }),
})

export default upstream({
  displayName: 'Mock data',
  category: 'developer',
  description: 'Fixed made-up posts, users and comments from JSONPlaceholder, for trying things out.',
  tags: ['mock', 'testing', 'posts', 'users', 'comments'],
  keywords: words('dummy fake sample placeholder test lorem ipsum json'),
  terms: {
    summary: 'Code and data under the MIT licence; free, no registration.',
    url: 'https://jsonplaceholder.typicode.com',
    licence: 'https://opensource.org/license/mit',
  },
  baseUrl: 'https://jsonplaceholder.typicode.com',
  // No limit is published. This limit is polite, and nearly all answers come from the cache.
  caps: { concurrency: 4, rates: [{ max: 100, seconds: 60 }] },
  probe: { request: { path: path`/posts/1` }, everySeconds: 120 },
  reservedParameters: words('callback'),
  endpoints: {
    '/posts': endpoint({
      description: 'One mock blog post by id.',
      parameters: { id: param.integer('Post id', { minimum: 1, maximum: 100 }) },
      data: post,
      cache: { ...forGood, notFoundSeconds: lifetime.day },
      request: ({ id }) => ({ path: path`/posts/${id}` }),
      isNotFound: ({ body }) => isEmpty(body),
      readFrom: ({ body }) => (isEmpty(body) ? notFound() : body),
      example: recordings['/posts'],
    }),
    '/users': endpoint({
      description: 'One mock user by id.',
      parameters: { id: param.integer('User id', { minimum: 1, maximum: 10 }) },
      data: user,
      cache: { ...forGood, notFoundSeconds: lifetime.day },
      request: ({ id }) => ({ path: path`/users/${id}` }),
      isNotFound: ({ body }) => isEmpty(body),
      readFrom: ({ body }) => (isEmpty(body) ? notFound() : body),
      example: recordings['/users'],
    }),
    '/comments': endpoint({
      description: 'All 500 mock comments.',
      data: all,
      cache: forGood,
      request: () => ({ path: path`/comments` }),
      readFrom: ({ body }) => ({ comments: body }),
      example: recordings['/comments'],
    }),
  },
})

/** The body of an unknown id: an object without members. */
function isEmpty(body: unknown): boolean {
  return isObject(body) && Object.keys(body).length === 0
}
