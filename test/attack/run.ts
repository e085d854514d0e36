import { parseArgs } from 'node:util'
import { startGateway } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { accountRows } from './account-rows.ts'
import { closeApi } from './close-api.ts'
import { operatorConsole } from './console.ts'
import { halfOpen } from './half-open.ts'
import { hostileRequests } from './hostile-requests.ts'
import { largeAnswers } from './large-answers.ts'
import { bodyFlood, heldBodies, slowClients } from './large-bodies.ts'
import { logFlood } from './log-flood.ts'
import { logIns } from './log-ins.ts'
import { madeUpKeys } from './made-up-keys.ts'
import { manyAccounts, singleTenant } from './many-accounts.ts'
import { mcpWork } from './mcp-work.ts'
import { onePerson } from './one-person.ts'
import { pipelining } from './pipelining.ts'
import { provokedLimit } from './provoked-limit.ts'
import { redisMemory } from './redis-memory.ts'
import { revokedKey } from './revoked-key.ts'
import type { Scenario } from './scenario.ts'
import { signIns } from './sign-ins.ts'
import { silentDns } from './silent-dns.ts'
import { unknownKeys } from './unknown-keys.ts'
import { unreadPages, unreadResults } from './unread-answers.ts'
import { usageRows } from './usage-rows.ts'

const SCENARIOS: Scenario[] = [
  closeApi,
  halfOpen,
  provokedLimit,
  pipelining,
  manyAccounts,
  singleTenant,
  onePerson,
  madeUpKeys,
  unknownKeys,
  redisMemory,
  largeAnswers,
  logIns,
  accountRows,
  hostileRequests,
  operatorConsole,
  revokedKey,
  mcpWork,
  usageRows,
  logFlood,
  silentDns,
  signIns,
  unreadPages,
  unreadResults,
  bodyFlood,
  heldBodies,
  slowClients,
]

/** How long an attack lasts, seconds. */
const SECONDS = 10

const HELP = `Usage: npm run attack -- [scenario …]

Attacks, each on a gateway of its own, on this machine alone, and of about ${SECONDS} seconds. Prints for each what must hold,
whether it does, and what was measured. Without names all of them run.

${SCENARIOS.map(({ name, claim }) => `  ${name.padEnd(18)} ${claim}`).join('\n')}

Exit code: 0 all of it held, 1 something did not, 2 there is no such scenario.`

async function attack(scenarios: Scenario[]): Promise<number> {
  let failed = 0
  for (const scenario of scenarios) {
    if (!(await isHeld(scenario))) failed += 1
  }
  return failed === 0 ? 0 : 1
}

function chosen(): Scenario[] | undefined {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean' } } })
  if (values.help) return undefined
  const unknown = positionals.find((name) => !SCENARIOS.some((scenario) => scenario.name === name))
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}" (--help lists them)`)
  return positionals.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => positionals.includes(name))
}

async function isHeld({ name, claim, slugs = [], run, ...scenario }: Scenario): Promise<boolean> {
  const upstream = await startUpstreamServer()
  const gateway = await startGateway({
    ...(scenario.execArgv ? { execArgv: scenario.execArgv } : {}),
    environment: { ...upstream.environment(...slugs), ...scenario.environment },
  })
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

try {
  const scenarios = chosen()
  if (scenarios) process.exit(await attack(scenarios))
  console.log(HELP)
  process.exit(0)
} catch (error) {
  console.error(`attack: ${error instanceof Error ? error.message : error}`)
  process.exit(2)
}
