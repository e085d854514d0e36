import { startGateway } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { accountRows } from './account-rows.ts'
import { closeApi } from './close-api.ts'
import { operatorConsole } from './console.ts'
import { hostileRequests } from './hostile-requests.ts'
import { logIns } from './log-ins.ts'
import { manyAccounts, singleTenant } from './many-accounts.ts'
import { pipelining } from './pipelining.ts'
import { redisMemory } from './redis-memory.ts'
import type { Scenario } from './scenario.ts'
import { unknownKeys } from './unknown-keys.ts'

const SCENARIOS: Scenario[] = [
  closeApi,
  pipelining,
  manyAccounts,
  singleTenant,
  unknownKeys,
  redisMemory,
  logIns,
  accountRows,
  hostileRequests,
  operatorConsole,
]

/** How long an attack lasts, seconds. */
const SECONDS = 10

/**
 * `npm run attack -- [name …]`: attacks on a gateway of its own, on this machine alone, each bounded in time and size.
 * Prints for each what must hold, whether it does, and what was measured.
 */
async function main(names: string[]): Promise<number> {
  const unknown = names.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name))
  if (unknown.length > 0) {
    console.error(
      `There is no attack ${unknown.join(', ')}; there are ${SCENARIOS.map(({ name }) => name).join(', ')}.`,
    )
    return 2
  }
  let failed = 0
  for (const scenario of SCENARIOS.filter(({ name }) => names.length === 0 || names.includes(name))) {
    if (!(await isHeld(scenario))) failed += 1
  }
  return failed === 0 ? 0 : 1
}

async function isHeld({ name, claim, environment, slugs = [], run }: Scenario): Promise<boolean> {
  const upstream = await startUpstreamServer()
  const gateway = await startGateway({ environment: { ...upstream.environment(...slugs), ...environment } })
  try {
    const { isPassed, figures } = await run(gateway, SECONDS, upstream)
    const measured = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`)
    console.log(`${isPassed ? 'PASS' : 'FAIL'}  ${name}: ${claim}\n      ${measured.join(' · ')}`)
    return isPassed
  } catch (error) {
    console.log(`FAIL  ${name}: ${claim}\n     `, error)
    return false
  } finally {
    await gateway.stop()
    await upstream.close()
  }
}

process.exit(await main(process.argv.slice(2)))
