import { FREE_ROWS_MAX } from '../../src/db/usage.ts'
import { type Account, createKey, send, signUp, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { type Outcome, percentile, type Scenario } from './scenario.ts'

const KEYS = 30

/** Reports that are read at the same time. */
const LOOPS = 32

/**
 * Days for which the account has usage. SQL writes it, because the attack may go on for as long as
 * rows are kept.
 */
const DAYS = 30

/**
 * Statuses of refused and test calls that an account can provoke. The rest of a day is kept by
 * status.
 */
const REST_ROWS_MAX = 40

/** Calls of many keys that cost nothing make rows of usage, which many reports then read. */
export const usageRows: Scenario = {
  name: 'usage-rows',
  claim: 'free calls add a bounded number of rows a day, and reports of an account do not keep others from Postgres',
  run: async (gateway, seconds): Promise<Outcome> => {
    const [attacker, other] = [await signUp(gateway), await signUp(gateway)]
    const refused = await refuseCalls(gateway, attacker)
    const total = async () => Number((await send(gateway, '/v1/usage', { token: attacker.token })).body.total)
    await until(async () => (await total()) === refused)
    const [{ rows } = { rows: 0 }] = await sql<{ rows: number }>(
      gateway,
      'select count(*)::int as rows from refusals_daily where user_id = $1',
      [attacker.id],
    )
    await sql(
      gateway,
      `insert into refusals_daily select day - ago, user_id, key, slug, status, mode, calls
       from refusals_daily, generate_series(1, ${DAYS - 1}) as ago where user_id = $1`,
      [attacker.id],
    )
    const { reports, statuses, latencies } = await readReports(gateway, { attacker, other, seconds })
    const p99 = percentile(latencies, 0.99)
    return {
      isPassed: rows <= FREE_ROWS_MAX + REST_ROWS_MAX && statuses.every((status) => status === 200) && p99 < 250,
      figures: {
        'refused calls': refused,
        'rows of the day': rows,
        'reports answered': reports,
        "other account's requests": statuses.length,
        'of them not 200': statuses.filter((status) => status !== 200).length,
        'p99 ms': Math.round(p99),
      },
    }
  },
}

/**
 * Makes calls that the gateway refuses.
 * @returns how many it refused
 */
async function refuseCalls(gateway: Gateway, { token }: Account): Promise<number> {
  const { body } = await send(gateway, '/v1/catalog')
  const slugs: string[] = body.data.map(({ api_name }: { api_name: string }) => api_name)
  for (let made = 0; made < KEYS; made += 1) {
    const { key, id } = await createKey(gateway, token, 'test')
    await Promise.all(slugs.map((slug) => send(gateway, `/v1/call/${slug}/nosuch`, { key })))
    await send(gateway, `/v1/keys/${id}`, { method: 'DELETE', token })
  }
  return KEYS * slugs.length
}

/** Reads reports without pause, and makes requests of another account beside them. */
async function readReports(
  gateway: Gateway,
  { attacker, other, seconds }: { attacker: Account; other: Account; seconds: number },
): Promise<{ reports: number; statuses: number[]; latencies: number[] }> {
  const until = performance.now() + seconds * 1_000
  const query = '?groupBy=day,api,key,status,mode,charged'
  let reports = 0
  const statuses: number[] = []
  const latencies: number[] = []
  const report = async (): Promise<void> => {
    while (performance.now() < until) {
      const { status } = await send(gateway, `/v1/usage${query}`, { token: attacker.token })
      if (status === 200) reports += 1
    }
  }
  const look = async (): Promise<void> => {
    while (performance.now() < until) {
      const startedAt = performance.now()
      statuses.push((await send(gateway, '/v1/me', { token: other.token })).status)
      latencies.push(performance.now() - startedAt)
    }
  }
  await Promise.all([look(), ...Array.from({ length: LOOPS }, report)])
  return { reports, statuses, latencies }
}
