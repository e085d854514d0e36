import { setTimeout as delay } from 'node:timers/promises'
import { type Account, send, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { type Outcome, percentile, type Scenario } from './scenario.ts'

/** Clients that flood, and the requests that each has open. */
const CLIENTS = 4
const PARALLEL = 30

/** Time after which a refused client tries again, milliseconds. */
const REFUSED_MS = 1_000

/** Log-ins with the right password that an account may make in a minute. */
const LOGINS_MAX = 10

/** Longest median time of a call while the node hashes passwords, milliseconds. */
const MEDIAN_MS_MAX = 100

/**
 * Log-ins make the node hash passwords: right passwords of the floods' own accounts, and wrong
 * passwords.
 */
export const logIns: Scenario = {
  name: 'log-ins',
  claim: `${CLIENTS} clients with ${PARALLEL} log-ins each at once slow down log-ins, but not calls; an account may log in ${LOGINS_MAX} times a minute`,
  environment: {
    TRUST_PROXY: '127.0.0.1',
    LOGIN_FAILURES_PER_MINUTE: '30',
    PLAN_LIMITS: '{"Free":{"perMinute":100000,"perMonth":1000000,"inFlight":1000}}',
  },
  run: async (gateway, seconds): Promise<Outcome> => {
    const [owner, ...attackers] = await Promise.all(Array.from({ length: CLIENTS + 1 }, () => signUp(gateway)))
    if (!owner) throw new Error('there is no account')
    const before = await callsFor(gateway, owner, seconds / 2)
    const outcomes = { good: 0, refused: 0 }
    let isEnding = false
    const lanes = attackers.flatMap((account, client) =>
      Array.from({ length: PARALLEL }, async (_, lane) => {
        while (!isEnding) {
          const password = lane % 2 ? account.password : `wrong ${Math.random()}`
          const status = await logIn(gateway, { ...account, password }, `203.0.113.${client}`)
          if (status === 200) outcomes.good += 1
          else outcomes.refused += 1
          if (status === 429) await delay(REFUSED_MS)
        }
      }),
    )
    const startedAt = performance.now()
    const login = logIn(gateway, owner, '198.51.100.1').then((status) => ({
      status,
      tookMs: Math.round(performance.now() - startedAt),
    }))
    const during = await callsFor(gateway, owner, seconds)
    const ownLogin = await login
    isEnding = true
    await Promise.all(lanes)
    const medianMs = percentile(during, 0.5)
    return {
      isPassed: medianMs < MEDIAN_MS_MAX && ownLogin.status === 200 && outcomes.good <= CLIENTS * LOGINS_MAX,
      figures: {
        'good log-ins of the flood': outcomes.good,
        refused: outcomes.refused,
        'calls p50 ms before': Math.round(percentile(before, 0.5)),
        during: Math.round(medianMs),
        'p99 ms before': Math.round(percentile(before, 0.99)),
        'p99 during': Math.round(percentile(during, 0.99)),
        "an owner's log-in": ownLogin.status,
        'after ms': ownLogin.tookMs,
      },
    }
  },
}

async function logIn(
  gateway: Gateway,
  { email, password }: Pick<Account, 'email' | 'password'>,
  address: string,
): Promise<number> {
  const headers = { 'x-forwarded-for': address }
  return (await send(gateway, '/v1/auth/login', { headers, body: { email, password } })).status
}

/**
 * Makes test calls one after the other.
 * @returns how long each took, milliseconds
 */
async function callsFor(gateway: Gateway, { test }: Account, seconds: number): Promise<number[]> {
  const took: number[] = []
  const end = performance.now() + seconds * 1_000
  while (performance.now() < end) {
    const startedAt = performance.now()
    const { status } = await send(gateway, '/v1/call/currency/latest', { key: test })
    if (status !== 200) throw new Error(`a call was answered ${status}`)
    took.push(performance.now() - startedAt)
    await delay(10)
  }
  return took
}
