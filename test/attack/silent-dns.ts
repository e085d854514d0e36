import { signUp, sql } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { startNameServer } from '../support/name-server.ts'
import { authorizeUrl } from '../support/oauth-client.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** Requests that the throttle lets a client make in a minute, and the number of clients. */
const REQUESTS = 20
const CLIENTS = 3

/** A node fetches one document at once for each client. It gives up each after a second. */
const FETCHES_MAX = CLIENTS
const FETCH_MS = 1_000

/**
 * Documents of applications on hosts whose name servers are silent, while a node needs new
 * connections to Postgres.
 */
export const silentDns: Scenario = {
  name: 'silent-dns',
  claim:
    'documents on hosts whose name servers are silent do not keep a node from Postgres, and only few are fetched at once',
  environment: { TRUST_PROXY: '127.0.0.1' },
  run: async (gateway): Promise<Outcome> => {
    const server = await startNameServer({ 'stores.example': ['127.0.0.1'] })
    const { token } = await signUp(gateway)
    // A process has one resolver of names, which reads the environment of the process.
    const { url } = await gateway.startWebProcess({
      DNS_SERVERS: server.address,
      DATABASE_URL: named(gateway.services.databaseUrl),
      REDIS_URL: named(gateway.services.redisUrl),
    })
    const me = () =>
      fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status)
    const openedAt = performance.now()
    const before = await me()
    // Time of a first request that needs a connection, while nobody attacks.
    const usualMs = performance.now() - openedAt
    const beganAt = performance.now()
    const attack = Array.from({ length: REQUESTS * CLIENTS }, (_, index) => begin(url, index))
    const attackMs = Promise.all(attack).then(() => performance.now() - beganAt)
    await Promise.race(attack)
    await cutPostgres(gateway)
    const cutAt = performance.now()
    let answered = 0
    while (answered !== 200 && performance.now() - cutAt < 100_000) answered = await me().catch(() => 0)
    const awayMs = Math.round(performance.now() - cutAt)
    const statuses = await Promise.all(attack)
    // On a busy machine the node gives up its first fetches before the last requests arrive, and
    // then begins new fetches.
    const namesMax = FETCHES_MAX * Math.ceil((await attackMs) / FETCH_MS)
    await server.close()
    const names = new Set(server.asked.filter((name) => name.startsWith('slow'))).size
    const refused = statuses.filter((status) => status === 503).length
    return {
      isPassed:
        before === 200 &&
        answered === 200 &&
        awayMs < 5_000 + 20 * usualMs &&
        names <= namesMax &&
        refused >= statuses.length - namesMax,
      figures: { requests: statuses.length, 'names looked up': names, refused, 'ms without Postgres': awayMs },
    }
  },
}

function named(address: string): string {
  const url = new URL(address)
  url.hostname = 'stores.example'
  return url.href
}

/**
 * Begins a sign-in of an application with a document of its own.
 * @returns the status of the answer
 */
async function begin(url: string, index: number): Promise<number> {
  const clientId = `https://slow-${index}.attacker.example/app.json`
  const headers = { 'x-forwarded-for': `192.0.2.${index % CLIENTS}` }
  const redirectUri = 'https://attacker.example/cb'
  const response = await fetch(authorizeUrl(url, { clientId, redirectUri }), { headers, redirect: 'manual' })
  await response.arrayBuffer()
  return response.status
}

async function cutPostgres(gateway: Gateway): Promise<void> {
  await sql(
    gateway,
    'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()',
  )
}
