import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { FastifyInstance, HTTPMethods } from 'fastify'
import pg from 'pg'
import type { Tier } from '../../src/catalog/upstream.ts'
import { checkAnswer } from './answer-check.ts'
import { type Gateway, until } from './gateway.ts'

/** What a request needs of a gateway. */
type Addressed = Pick<Gateway, 'services' | 'url' | 'urls' | 'apps'>

// biome-ignore lint/suspicious/noExplicitAny: what shape an answer has is what the tests check
type AnyShape = Record<string, any>

/** An answer, read. */
export interface Answer<T = AnyShape> {
  status: number
  headers: Headers
  body: T
  text: string
}

export interface RequestOptions {
  method?: string
  token?: string | undefined
  key?: string
  body?: unknown
  headers?: Record<string, string>
  /** Another API node than the first. */
  url?: string
  signal?: AbortSignal
}

/**
 * Sends one request to the gateway and reads the answer, which must be one that the gateway's own document allows.
 *
 * @throws Error when it is not
 */
export async function send(gateway: Addressed, path: string, options: RequestOptions = {}): Promise<Answer> {
  const headers: Record<string, string> = { ...options.headers }
  if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
  if (options.key !== undefined) headers['x-api-key'] = options.key
  if (options.body !== undefined) headers['content-type'] ??= 'application/json'
  const node = options.url ?? gateway.url
  const method = options.method ?? (options.body === undefined ? 'GET' : 'POST')
  const { body, signal } = options
  const response = await request(gateway.apps.get(node), node + path, {
    method,
    headers,
    redirect: 'manual',
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  })
  const text = await response.text()
  if (gateway.urls.includes(node)) {
    const contentType = response.headers.get('content-type') ?? ''
    await checkAnswer({ node, method, path, status: response.status, contentType, text })
  }
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text), text }
}

/** Statuses whose answers have no body. */
const NO_BODY = new Set([204, 304])

interface Init {
  method: string
  headers: Record<string, string>
  body?: string
  redirect: 'manual'
  signal?: AbortSignal
}

/**
 * Sends one request as `fetch` does; to an API node inside this process without a connection. A request that may be aborted
 * gets one there too: a node notices that a caller left by the connection that closes.
 */
async function request(app: FastifyInstance | undefined, address: string, init: Init): Promise<Response> {
  if (!app || init.signal) return await fetch(address, init)
  const { pathname, search, host } = new URL(address)
  const { statusCode, headers, rawPayload } = await app.inject({
    method: init.method as HTTPMethods,
    url: pathname + search,
    headers: { host, accept: '*/*', ...init.headers },
    ...(init.body === undefined ? {} : { payload: init.body }),
  })
  const lines = Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().map((line): [string, string] => [name, String(line)]),
  )
  return new Response(NO_BODY.has(statusCode) ? null : rawPayload, { status: statusCode, headers: lines })
}

/**
 * Makes a call and waits for its line in the log. @returns what the processes printed, in which all is that the first API node
 * wrote before: each process writes its lines in their order, and in batches
 */
export async function outputUntilNow(gateway: Gateway): Promise<string> {
  const { test } = await signUp(gateway)
  const { headers } = await send(gateway, '/v1/call/mock-data/posts?id=1', { key: test })
  const requestId = headers.get('x-request-id') ?? assert.fail('an answer has a request id')
  await until(() => gateway.output.join('').includes(requestId))
  return gateway.output.join('')
}

/** An account made through the front door, with a key of each environment. */
export interface Account {
  id: string
  email: string
  password: string
  token: string
  live: string
  test: string
}

/** Signs up a new account; `tier` is then set as an operator would. */
export async function signUp(gateway: Addressed, tier: Tier = 'developer'): Promise<Account> {
  const email = `${randomUUID()}@example.com`
  const password = `correct horse ${randomUUID()}`
  const { body } = await send(gateway, '/v1/auth/signup', { body: { email, password } })
  if (tier !== 'developer') await sql(gateway, 'update users set tier = $1 where id = $2', [tier, body.user.id])
  const live = await createKey(gateway, body.token, 'live')
  const test = await createKey(gateway, body.token, 'test')
  return { id: body.user.id, email, password, token: body.token, live: live.key, test: test.key }
}

export async function createKey(
  gateway: Addressed,
  token: string,
  environment: 'live' | 'test' = 'live',
): Promise<{ key: string; id: string; keyPrefix: string }> {
  const { body } = await send(gateway, '/v1/keys', { token, body: { environment } })
  return body as { key: string; id: string; keyPrefix: string }
}

/** Runs a statement on the gateway's database. */
export async function sql<Row>(gateway: Addressed, statement: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: gateway.services.databaseUrl })
  await client.connect()
  try {
    return (await client.query(statement, values)).rows
  } finally {
    await client.end()
  }
}
