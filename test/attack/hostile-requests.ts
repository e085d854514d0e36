import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../../src/local/embedded/postgres.ts'
import { outputUntilNow, send, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** Uploads that the client breaks off. */
const UPLOADS = 200

/**
 * Single requests that once did harm: they passed a key on, got around a refusal, cost a node time,
 * or filled its log.
 */
export const hostileRequests: Scenario = {
  name: 'hostile-requests',
  claim:
    'a key of the gateway never reaches an upstream, no spelling evades a refusal, and bodies of strangers cost and log nothing',
  slugs: ['geocoding'],
  environment: { UPSTREAM_GEOCODING_CAPS: 'concurrency=4,1000/1' },
  run: async (gateway, _seconds, upstream): Promise<Outcome> => {
    upstream?.play('geocoding', () => [])
    const spellings = await refusedSpellings(gateway, upstream)
    const { status: largeStatus, tookMs: largeMs } = await sendLargeLogIn(gateway)
    const errors = await breakUploadsOff(gateway)
    const superuser = await refusedAsSuperuser()
    const areSpellingsRefused = spellings.refused === spellings.sent && spellings.leaked === 0
    return {
      isPassed: areSpellingsRefused && largeStatus === 413 && errors === 0 && superuser.refused === superuser.tried,
      figures: {
        'hostile parameters': spellings.sent,
        refused: spellings.refused,
        'keys at the upstream': spellings.leaked,
        'log-in of 1 MB': largeStatus,
        'after ms': Math.round(largeMs),
        [`error lines of ${UPLOADS} broken uploads`]: errors,
        "statements of a superuser over the gateway's address": superuser.tried,
        'of them refused': superuser.refused,
      },
    }
  },
}

async function refusedSpellings(gateway: Gateway, upstream: UpstreamServer | undefined) {
  const { live, test } = await signUp(gateway)
  const hostile = [
    `x-api-key=${live}`,
    `note=${test}`,
    'Format=xml',
    'format[]=xml',
    'Limit=50',
    'limit[]=50',
    'API_KEY=x',
  ]
  let refused = 0
  for (const parameter of hostile) {
    const path = `/v1/call/geocoding/search?q=berlin&${parameter}`
    if ((await send(gateway, path, { key: live })).status === 400) refused += 1
  }
  const leaked = upstream?.arrivalsOf('geocoding').filter(({ url }) => /agw_(live|test)_/.test(url)).length ?? 0
  return { sent: hostile.length, refused, leaked }
}

async function sendLargeLogIn(gateway: Gateway): Promise<{ status: number; tookMs: number }> {
  const startedAt = performance.now()
  const { status } = await send(gateway, '/v1/auth/login', { body: `[${'"",'.repeat(330_000)}""]` })
  return { status, tookMs: performance.now() - startedAt }
}

/**
 * Breaks uploads off.
 * @returns the number of lines of level `error` that the node wrote meanwhile
 */
async function breakUploadsOff(gateway: Gateway): Promise<number> {
  const count = async () => (await outputUntilNow(gateway)).match(/"level":"error"/g)?.length ?? 0
  const before = await count()
  const head =
    'POST /v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{'
  for (let index = 0; index < UPLOADS; index += 1) {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(head)
    socket.resetAndDestroy()
  }
  return (await count()) - before
}

/**
 * Tries what only a superuser may do, at the address of Postgres that `npm start` gives to the
 * gateway.
 */
async function refusedAsSuperuser(): Promise<{ tried: number; refused: number }> {
  const statements = [
    "select pg_read_file('/etc/passwd')",
    "copy (select 1) to '/tmp/agw-attack'",
    "create table attack (line text); copy attack from program 'id'",
    'create role attacker superuser',
  ]
  const dataDir = await mkdtemp(join(tmpdir(), 'agw-attack-'))
  const postgres = await startPostgres({ dataDir, print: () => undefined })
  const client = new pg.Client(postgres.url)
  let refused = 0
  try {
    await client.connect()
    for (const statement of statements) {
      await client.query(statement).catch(() => {
        refused += 1
      })
    }
  } finally {
    await client.end()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  return { tried: statements.length, refused }
}
