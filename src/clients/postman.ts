import type { ClientApi, ClientEndpoint } from './client-api.ts'

/** A request of the collection, with the members that Postman and Bruno read. */
export interface PostmanItem {
  name: string
  request: {
    method: 'GET' | 'POST'
    description?: string
    auth?: object
    header: { key: string; value: string }[]
    url: {
      raw: string
      host: string[]
      path: string[]
      query?: { key: string; value: string; description?: string; disabled?: boolean }[]
    }
    body?: { mode: 'raw'; raw: string; options: object }
  }
  event?: object[]
}

export interface PostmanCollection {
  info: { name: string; description: string; schema: string }
  variable: { key: string; value: string }[]
  auth: object
  item: { name: string; description: string; item: PostmanItem[] }[]
}

/**
 * A collection with every endpoint, in format 2.1, which Bruno and Insomnia import too. The
 * variable `apiKey` holds the key.
 */
export function postmanCollection(apis: ClientApi[], baseUrl: string): PostmanCollection {
  return {
    info: {
      name: 'Agent API Gateway',
      description:
        'Set the variable apiKey to a test or live key. If you have none, run the requests of the folder Account in order: they make an account and a test key, and set the variable.',
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    variable: [
      { key: 'baseUrl', value: baseUrl },
      { key: 'apiKey', value: '' },
      { key: 'token', value: '' },
      { key: 'email', value: 'you@example.com' },
      { key: 'password', value: 'correct horse battery staple' },
    ],
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: 'X-Api-Key', type: 'string' },
        { key: 'value', value: '{{apiKey}}', type: 'string' },
        { key: 'in', value: 'header', type: 'string' },
      ],
    },
    item: [
      ...apis.map(({ slug, displayName, description, endpoints }) => ({
        name: displayName,
        description,
        item: endpoints.map((endpoint) => callItem(slug, endpoint)),
      })),
      { name: 'Account', description: 'A key of your own.', item: accountItems() },
    ],
  }
}

/**
 * The request of an endpoint. It sends the required parameters or, if there are none, the
 * parameters of the recorded call. Other parameters are listed but disabled.
 */
function callItem(slug: string, endpoint: ClientEndpoint): PostmanItem {
  const { path, description, parameters, example, method } = endpoint
  if (method === 'POST') return postItem(slug, endpoint)
  const hasRequired = parameters.some(({ required }) => required)
  const query = parameters.map(({ name, required, schema }) => ({
    key: name,
    value: String(example[name] ?? schema.default ?? schema.enum?.[0] ?? ''),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    ...(required || (!hasRequired && example[name] !== undefined) ? {} : { disabled: true }),
  }))
  const sent = query.filter(({ disabled }) => !disabled).map(({ key, value }) => `${key}=${encodeURIComponent(value)}`)
  return {
    name: description.replace(/\.$/, ''),
    request: {
      method: 'GET',
      description,
      header: [],
      url: {
        raw: `{{baseUrl}}/v1/call/${slug}/${path}${sent.length === 0 ? '' : `?${sent.join('&')}`}`,
        host: ['{{baseUrl}}'],
        path: ['v1', 'call', slug, path],
        ...(query.length === 0 ? {} : { query }),
      },
    },
  }
}

function postItem(slug: string, { path, description, example }: ClientEndpoint): PostmanItem {
  return {
    name: description.replace(/\.$/, ''),
    request: {
      method: 'POST',
      description,
      header: [{ key: 'Content-Type', value: 'application/json' }],
      url: { raw: `{{baseUrl}}/v1/call/${slug}/${path}`, host: ['{{baseUrl}}'], path: ['v1', 'call', slug, path] },
      body: { mode: 'raw', raw: JSON.stringify(example, null, 2), options: { raw: { language: 'json' } } },
    },
  }
}

function accountItems(): PostmanItem[] {
  const credentials = '{ "email": "{{email}}", "password": "{{password}}" }'
  const bearer = { type: 'bearer', bearer: [{ key: 'token', value: '{{token}}', type: 'string' }] }
  const none = { type: 'noauth' }
  const post = (path: string[], auth: object, raw: string): PostmanItem['request'] => ({
    method: 'POST',
    auth,
    header: [{ key: 'Content-Type', value: 'application/json' }],
    url: { raw: `{{baseUrl}}/${path.join('/')}`, host: ['{{baseUrl}}'], path },
    body: { mode: 'raw', raw, options: { raw: { language: 'json' } } },
  })
  return [
    {
      name: 'Sign up',
      request: post(['v1', 'auth', 'signup'], none, credentials),
      event: [storingScript('token', 'token')],
    },
    {
      name: 'Log in',
      request: post(['v1', 'auth', 'login'], none, credentials),
      event: [storingScript('token', 'token')],
    },
    {
      name: 'Create a test key',
      request: post(['v1', 'keys'], bearer, '{ "environment": "test", "label": "Postman" }'),
      event: [storingScript('apiKey', 'key')],
    },
  ]
}

/** A script that stores a member of the answer in a variable. */
function storingScript(variable: string, member: string): object {
  return {
    listen: 'test',
    script: {
      type: 'text/javascript',
      exec: [
        `const { ${member} } = pm.response.json()`,
        `if (${member}) pm.collectionVariables.set('${variable}', ${member})`,
      ],
    },
  }
}
