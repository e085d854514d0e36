import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { isObject, objects } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid, notFound } from '../catalog/response-class.ts'
import { endpoint, path, type Upstream } from '../catalog/upstream.ts'

/** Nothing of it changes. */
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

const mockData: Upstream = {
  displayName: 'Mock data',
  category: 'developer',
  description: 'Fixed made-up posts, users and comments from JSONPlaceholder, for trying things out.',
  tags: ['mock', 'testing', 'posts', 'users', 'comments'],
  keywords: ['dummy', 'fake', 'sample', 'placeholder', 'test', 'lorem', 'ipsum', 'json'],
  tierRequired: 'developer',
  terms: {
    summary: 'Code and data under the MIT licence; free, no registration.',
    url: 'https://jsonplaceholder.typicode.com',
    licence: 'https://opensource.org/license/mit',
  },
  baseUrl: 'https://jsonplaceholder.typicode.com',
  // No limit is published; this limit is polite, and the data are nearly always in the cache.
  caps: { concurrency: 4, rates: [{ max: 100, seconds: 60 }] },
  probe: { request: { path: path`/posts/1` }, everySeconds: 120 },
  reservedParameters: ['callback'],
  endpoints: {
    '/posts': endpoint({
      description: 'One mock blog post by id.',
      parameters: Type.Object({
        id: Type.Integer({ minimum: 1, maximum: 100, description: 'Post id' }),
      }),
      data: post.schema,
      cache: { ...forGood, notFoundSeconds: lifetime.day },
      request: ({ id }) => ({ path: path`/posts/${id}` }),
      isNotFound: ({ body }) => isEmpty(body),
      map: ({ body }) => post.read(body) ?? (isEmpty(body) ? notFound() : invalid()),
      example: recordedPosts(),
    }),
    '/users': endpoint({
      description: 'One mock user by id.',
      parameters: Type.Object({
        id: Type.Integer({ minimum: 1, maximum: 10, description: 'User id' }),
      }),
      data: user.schema,
      cache: { ...forGood, notFoundSeconds: lifetime.day },
      request: ({ id }) => ({ path: path`/users/${id}` }),
      isNotFound: ({ body }) => isEmpty(body),
      map: ({ body }) => user.read(body) ?? (isEmpty(body) ? notFound() : invalid()),
      example: recordedUsers(),
    }),
    '/comments': endpoint({
      description: 'All 500 mock comments.',
      parameters: Type.Object({}),
      data: all.schema,
      cache: forGood,
      request: () => ({ path: path`/comments` }),
      map: ({ body }) => all.read({ comments: body }) ?? invalid(),
      example: recordedComments(),
    }),
  },
}

export default mockData

/** The body of an unknown id: an object without members. */
function isEmpty(body: unknown): boolean {
  return isObject(body) && Object.keys(body).length === 0
}

function recordedPosts() {
  return {
    parameters: { id: 1 },
    // biome-ignore format: as recorded
    response: {
      userId: 1, id: 1, title: 'sunt aut facere repellat provident occaecati excepturi optio reprehenderit',
      body: 'quia et suscipit\nsuscipit recusandae consequuntur expedita et cum\nreprehenderit molestiae ut ut quas totam\nnostrum rerum est autem sunt rem eveniet architecto',
    },
    // biome-ignore format: as recorded
    data: {
      id: 1,
      body: 'quia et suscipit\nsuscipit recusandae consequuntur expedita et cum\nreprehenderit molestiae ut ut quas totam\nnostrum rerum est autem sunt rem eveniet architecto',
      title: 'sunt aut facere repellat provident occaecati excepturi optio reprehenderit', userId: 1,
    },
  }
}

function recordedUsers() {
  return {
    parameters: { id: 1 },
    // biome-ignore format: as recorded
    response: {
      id: 1, name: 'Leanne Graham', username: 'Bret', email: 'Sincere@april.biz',
      address: { street: 'Kulas Light', suite: 'Apt. 556', city: 'Gwenborough', zipcode: '92998-3874', geo: { lat: '-37.3159', lng: '81.1496' } },
      phone: '1-770-736-8031 x56442', website: 'hildegard.org',
      company: { name: 'Romaguera-Crona', catchPhrase: 'Multi-layered client-server neural-net', bs: 'harness real-time e-markets' },
    },
    // biome-ignore format: as recorded
    data: {
      id: 1, city: 'Gwenborough', name: 'Leanne Graham', email: 'Sincere@april.biz', phone: '1-770-736-8031 x56442', username: 'Bret', website: 'hildegard.org',
      company: 'Romaguera-Crona', address: { street: 'Kulas Light', suite: 'Apt. 556', city: 'Gwenborough', zipcode: '92998-3874', lat: -37.3159, lng: 81.1496 },
    },
  }
}

function recordedComments() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: [
      {
        postId: 1, id: 1, name: 'id labore ex et quam laborum', email: 'Eliseo@gardner.biz',
        body: 'laudantium enim quasi est quidem magnam voluptate ipsam eos\ntempora quo necessitatibus\ndolor quam autem quasi\nreiciendis et nam sapiente accusantium',
      },
      {
        postId: 1, id: 2, name: 'quo vero reiciendis velit similique earum', email: 'Jayne_Kuhic@sydney.com',
        body: 'est natus enim nihil est dolore omnis voluptatem numquam\net omnis occaecati quod ullam at\nvoluptatem error expedita pariatur\nnihil sint nostrum voluptatem reiciendis et',
      },
      {
        postId: 1, id: 3, name: 'odio adipisci rerum aut animi', email: 'Nikita@garfield.biz',
        body: 'quia molestiae reprehenderit quasi aspernatur\naut expedita occaecati aliquam eveniet laudantium\nomnis quibusdam delectus saepe quia accusamus maiores nam est\ncum et ducimus et vero voluptates excepturi deleniti ratione',
      },
    ],
    // biome-ignore format: as recorded
    data: {
      count: 3,
      comments: [
        {
          id: 1, postId: 1, name: 'id labore ex et quam laborum', email: 'Eliseo@gardner.biz',
          body: 'laudantium enim quasi est quidem magnam voluptate ipsam eos\ntempora quo necessitatibus\ndolor quam autem quasi\nreiciendis et nam sapiente accusantium',
        },
        {
          id: 2, postId: 1, name: 'quo vero reiciendis velit similique earum', email: 'Jayne_Kuhic@sydney.com',
          body: 'est natus enim nihil est dolore omnis voluptatem numquam\net omnis occaecati quod ullam at\nvoluptatem error expedita pariatur\nnihil sint nostrum voluptatem reiciendis et',
        },
        {
          id: 3, postId: 1, name: 'odio adipisci rerum aut animi', email: 'Nikita@garfield.biz',
          body: 'quia molestiae reprehenderit quasi aspernatur\naut expedita occaecati aliquam eveniet laudantium\nomnis quibusdam delectus saepe quia accusamus maiores nam est\ncum et ducimus et vero voluptates excepturi deleniti ratione',
        },
      ],
    },
  }
}
