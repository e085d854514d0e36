import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { FastifyInstance, HTTPMethods } from 'fastify'
import { Kysely, PostgresDialect } from 'kysely'
import { SESSION_MS, signSessionToken } from '../../src/accounts/session-token.ts'
import type { Tier } from '../../src/catalog/upstream.ts'
import { EnvironmentReader } from '../../src/config/environment-reader.ts'
import { ProcessSecrets } from '../../src/config/secrets.ts'
import type { Database } from '../../src/db/schema.ts'
import { insertSession } from '../../src/db/sessions.ts'
import { insertUser, updateUser } from '../../src/db/users.ts'
import { checkAnswer } from './answer-check.ts'
import { type Gateway, until } from './gateway.ts'
import { poolOf } from './test-pools.ts'

/** The parts of a gateway that a request needs. */
type Addressed = Pick<Gateway, 'services' | 'url' | 'urls' | 'apps' | 'environment'>

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
  /** An API node to use instead of the first. */
  url?: string
  signal?: AbortSignal
}

/**
 * Sends one request to the gateway and reads the answer. It fails if the gateway's own document
 * does not allow the answer.
 *
 * @throws Error if the document does not allow the answer
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
    const checked = { node, gateway: gateway.urls[0], method, path, status: response.status, contentType, text }
    await checkAnswer(checked)
  }
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text), text }
}

const TRIES_MAX = 5

/**
 * Sends a request, and sends it again if a busy machine kept the gateway from Redis or Postgres for
 * longer than it waits for them. Such an answer costs nothing. It is for tests that take neither
 * store away.
 */
export async function sendPatiently(gateway: Addressed, path: string, options: RequestOptions = {}): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send(gateway, path, options)
    if (tries === TRIES_MAX || !answer.text.includes('DEPENDENCY_UNAVAILABLE')) return answer
  }
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
 * Sends one request as `fetch` does; to an API node inside this process without a connection. A
 * request that may be aborted gets a connection there too, because a node notices by the closed
 * connection that a caller has left.
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
 * Makes a call and waits for its line in the log.
 * @returns what the processes have printed. It includes everything that the first API node wrote
 *   before the call, because each process writes its lines in order, although in batches
 */
export async function outputUntilNow(gateway: Gateway): Promise<string> {
  const { test } = await signUp(gateway)
  const { headers } = await send(gateway, '/v1/call/mock-data/posts?id=1', { key: test })
  const requestId = headers.get('x-request-id') ?? assert.fail('an answer has a request id')
  await until(() => gateway.output.join('').includes(requestId))
  return gateway.output.join('')
}

/** An account with a key of each environment. */
export interface Account {
  id: string
  email: string
  password: string
  token: string
  live: string
  test: string
}

/** A password whose hash is known, so that an account with it costs no hash. */
interface KnownPassword {
  password: string
  passwordHash: string
}

/**
 * The password of the first account that this process has made. All further accounts share the
 * password, because a hash takes a core for 70 ms.
 */
let shared: Promise<KnownPassword> | undefined

/** Makes an account with a key of each environment, and sets its tier as an operator would. */
export async function signUp(gateway: Addressed, tier: Tier = 'developer'): Promise<Account> {
  if (shared) return await withKeys(gateway, await copyAccount(gateway, { ...(await shared), tier }))
  const signedUp = signUpThroughApi(gateway)
  const known = signedUp.then(async ({ id, password }) => ({ password, passwordHash: await hashOf(gateway, id) }))
  shared = known
  known.catch(() => {
    shared = undefined
  })
  // A test may delete the account at once, so its hash is read first.
  const [account] = await Promise.all([signedUp, known])
  if (tier !== 'developer') await sql(gateway, 'update users set tier = $1 where id = $2', [tier, account.id])
  return account
}

/** Makes a new account by the public sign-up, with everything that a sign-up sets off. */
export async function signUpThroughApi(gateway: Addressed): Promise<Account> {
  const [email, password] = [`${randomUUID()}@example.com`, `correct horse ${randomUUID()}`]
  const { body } = await send(gateway, '/v1/auth/signup', { body: { email, password } })
  return await withKeys(gateway, { id: body.user.id, email, password, token: body.token })
}

async function hashOf(gateway: Addressed, userId: string): Promise<string> {
  const rows = await sql<{ hash: string }>(gateway, 'select password_hash as hash from users where id = $1', [userId])
  return rows[0]?.hash ?? assert.fail(`no account ${userId}`)
}

/** Makes an account and its session as a sign-up does, with a password whose hash is known. */
async function copyAccount(
  gateway: Addressed,
  { password, passwordHash, tier }: KnownPassword & { tier: Tier },
): Promise<Omit<Account, 'live' | 'test'>> {
  const { databaseUrl } = gateway.services
  const email = `${randomUUID()}@example.com`
  const [userId, sessionId, expiresAt] = [randomUUID(), randomUUID(), new Date(Date.now() + SESSION_MS)]
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: poolOf(databaseUrl) }) })
  await insertUser(db, { id: userId, email, passwordHash, signupNetwork: null })
  if (tier !== 'developer') await updateUser(db, userId, { tier })
  assert.ok(await insertSession(db, { id: sessionId, userId, passwordHash, expiresAt }))
  const { jwt } = new ProcessSecrets(new EnvironmentReader(gateway.environment), ['JWT_SECRET'])
  return { id: userId, email, password, token: await signSessionToken(jwt, { userId, sessionId }, expiresAt) }
}

async function withKeys(gateway: Addressed, account: Omit<Account, 'live' | 'test'>): Promise<Account> {
  const live = await createKey(gateway, account.token, 'live')
  const test = await createKey(gateway, account.token, 'test')
  return { ...account, live: live.key, test: test.key }
}

export async function createKey(
  gateway: Addressed,
  token: string,
  environment: 'live' | 'test' = 'live',
): Promise<{ key: string; id: string; keyPrefix: string }> {
  let body: AnyShape = {}
  await until(async () => {
    body = (await send(gateway, '/v1/keys', { token, body: { environment } })).body
    // A node says so if Postgres takes longer than a second, as it does on a busy machine.
    return body.code !== 'DEPENDENCY_UNAVAILABLE'
  })
  return body as { key: string; id: string; keyPrefix: string }
}

/** Runs a statement on the gateway's database. */
export async function sql<Row>(gateway: Addressed, statement: string, values: unknown[] = []): Promise<Row[]> {
  return (await poolOf(gateway.services.databaseUrl).query(statement, values)).rows
}
