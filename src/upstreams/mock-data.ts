import Type from 'typebox'
import {
  endpoint,
  integer,
  invalid,
  isObject,
  items,
  members,
  notFound,
  nullable,
  numeric,
  path,
  text,
  type Upstream,
} from '../catalog/upstream.ts'

/** Nothing of it changes. */
const forGood = { seconds: 86_400, staleWhileRevalidateSeconds: 604_800, staleIfErrorSeconds: 2_592_000 }

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
  // No limit is published; a polite one, and the data are nearly always in the cache.
  caps: { concurrency: 4, rates: [{ max: 100, seconds: 60 }] },
  probe: { request: { path: path`/posts/1` }, everySeconds: 120 },
  reservedParameters: ['callback'],
  endpoints: {
    '/posts': endpoint({
      description: 'One mock blog post by id.',
      parameters: Type.Object({
        id: Type.Integer({ minimum: 1, maximum: 100, description: 'Post id' }),
      }),
      data: Type.Object({
        id: Type.Integer({ description: 'Number of the post, 1 to 100' }),
        body: nullable(Type.String({ description: 'Text of the post, placeholder Latin' })),
        title: nullable(Type.String({ description: 'Title of the post, placeholder Latin' })),
        userId: nullable(Type.Integer({ description: 'Number of the author, 1 to 10' })),
      }),
      cache: { ...forGood, notFoundSeconds: 86_400 },
      request: ({ id }) => ({ path: path`/posts/${id}` }),
      map: ({ body }) => {
        const post = members(body)
        const id = integer(post.id)
        if (id === null) return isEmpty(body) ? notFound() : invalid()
        return { id, body: text(post.body), title: text(post.title), userId: integer(post.userId) }
      },
      example: recordedPosts(),
    }),
    '/users': endpoint({
      description: 'One mock user by id.',
      parameters: Type.Object({
        id: Type.Integer({ minimum: 1, maximum: 10, description: 'User id' }),
      }),
      data: Type.Object({
        id: Type.Integer({ description: 'Number of the user, 1 to 10' }),
        city: nullable(Type.String({ description: 'City of the address' })),
        name: nullable(Type.String({ description: 'Full name, invented' })),
        email: nullable(Type.String({ description: 'Email address, invented' })),
        phone: nullable(Type.String({ description: 'Telephone number, invented' })),
        username: nullable(Type.String({ description: 'Log-in name, invented' })),
        website: nullable(Type.String({ description: 'Domain, invented' })),
        company: nullable(Type.String({ description: 'Name of the company, invented' })),
        address: Type.Object(
          {
            street: nullable(Type.String({ description: 'Name of the street' })),
            suite: nullable(Type.String({ description: 'Apartment or suite' })),
            city: nullable(Type.String({ description: 'Name of the city' })),
            zipcode: nullable(Type.String({ description: 'ZIP code' })),
            lat: nullable(Type.Number({ description: 'Degrees north' })),
            lng: nullable(Type.Number({ description: 'Degrees east' })),
          },
          { description: 'Postal address, invented' },
        ),
      }),
      cache: { ...forGood, notFoundSeconds: 86_400 },
      request: ({ id }) => ({ path: path`/users/${id}` }),
      map: ({ body }) => {
        const user = members(body)
        const id = integer(user.id)
        if (id === null) return isEmpty(body) ? notFound() : invalid()
        const address = members(user.address)
        const geo = members(address.geo)
        return {
          id,
          city: text(address.city),
          name: text(user.name),
          email: text(user.email),
          phone: text(user.phone),
          username: text(user.username),
          website: text(user.website),
          company: text(members(user.company).name),
          address: {
            street: text(address.street),
            suite: text(address.suite),
            city: text(address.city),
            zipcode: text(address.zipcode),
            lat: numeric(geo.lat),
            lng: numeric(geo.lng),
          },
        }
      },
      example: recordedUsers(),
    }),
    '/comments': endpoint({
      description: 'All 500 mock comments.',
      parameters: Type.Object({}),
      data: Type.Object({
        count: Type.Integer({ description: 'Number of comments in the answer' }),
        comments: Type.Array(
          Type.Object({
            id: nullable(Type.Integer({ description: 'Number of the comment, 1 to 500' })),
            postId: nullable(Type.Integer({ description: 'Number of the post it belongs to' })),
            name: nullable(Type.String({ description: 'Title of the comment' })),
            email: nullable(Type.String({ description: 'Email address of the author, invented' })),
            body: nullable(Type.String({ description: 'Text of the comment, placeholder Latin' })),
          }),
          { description: 'Comments' },
        ),
      }),
      cache: forGood,
      request: () => ({ path: path`/comments` }),
      map: ({ body }) => {
        if (!Array.isArray(body)) return invalid()
        const comments = items(body)
          .filter(isObject)
          .map((comment) => ({
            id: integer(comment.id),
            postId: integer(comment.postId),
            name: text(comment.name),
            email: text(comment.email),
            body: text(comment.body),
          }))
        return { count: comments.length, comments }
      },
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
