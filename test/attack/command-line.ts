import { parseArgs } from 'node:util'
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

export const SCENARIOS: Scenario[] = [
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
export const SECONDS = 10

export const HELP = `Usage: npm run attack -- [scenario …]

Attacks, each on a gateway of its own, on this machine alone, and of about ${SECONDS} seconds. Prints for each what must hold,
whether it does, and what was measured. Without names all of them run.

${SCENARIOS.map(({ name, claim }) => `  ${name.padEnd(18)} ${claim}`).join('\n')}

Exit code: 0 every claim held, 1 a claim did not hold, 2 the scenario does not exist.`

/**
 * Returns the scenarios that the arguments name, or all scenarios if they name none. Undefined if
 * the arguments want help.
 *
 * @throws Error if no scenario has the name
 */
export function choose(args: string[]): Scenario[] | undefined {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { help: { type: 'boolean' } } })
  if (values.help) return undefined
  const unknown = positionals.find((name) => !SCENARIOS.some((scenario) => scenario.name === name))
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}" (--help lists them)`)
  return positionals.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => positionals.includes(name))
}
