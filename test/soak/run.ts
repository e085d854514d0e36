import { parseArgs } from 'node:util'
import { caps } from './caps.ts'
import { noisy } from './noisy.ts'
import { overload } from './overload.ts'
import { planLimits } from './plan-limits.ts'
import type { Claim, SoakScenario } from './scenario.ts'

const SCENARIOS: SoakScenario[] = [overload, caps, noisy, planLimits]

const HELP = `Usage: npm run soak -- [scenario …]

Long runs on real processes, with real windows, measured by the callers and at the upstream. Without names all of them run.

${SCENARIOS.map(({ name, minutes, about }) => `  ${name.padEnd(12)} ${String(minutes).padStart(3)} min  ${about}`).join('\n')}

Exit code: 0 every claim held, 1 a claim did not hold, 2 a run could not be carried out.`

/** Writes progress to stderr, because the results go to stdout. */
const print = (line: string): void => console.error(`  ${line}`)

async function soak(scenarios: SoakScenario[]): Promise<number> {
  const broken: Claim[] = []
  for (const { name, about, minutes, run } of scenarios) {
    console.log(`${name}: ${about} (about ${minutes} min)`)
    const claims = await run(print)
    for (const { what, value, bound, isHeld } of claims) {
      console.log(`  ${isHeld ? 'held  ' : 'BROKEN'}  ${what}: ${Number(value.toFixed(3))} (${bound})`)
    }
    broken.push(...claims.filter(({ isHeld }) => !isHeld))
  }
  return broken.length === 0 ? 0 : 1
}

function chosen(): SoakScenario[] | undefined {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean' } } })
  if (values.help) return undefined
  const unknown = positionals.find((name) => !SCENARIOS.some((scenario) => scenario.name === name))
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}" (--help lists them)`)
  return positionals.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => positionals.includes(name))
}

try {
  const scenarios = chosen()
  if (scenarios) process.exit(await soak(scenarios))
  console.log(HELP)
  process.exit(0)
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : error}`)
  process.exit(2)
}
