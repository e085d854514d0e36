import { parseArgs } from 'node:util'
import type { Claim } from '../soak/scenario.ts'
import { LONG_SCENARIOS } from './long-scenarios.ts'
import { quotedWaits } from './quoted-waits.ts'
import { runScenario } from './run-scenario.ts'
import { SCENARIOS, SHORT } from './scenarios.ts'
import { soak } from './soak.ts'

const ALL = [SHORT, ...SCENARIOS, ...LONG_SCENARIOS, quotedWaits, soak]

const HELP = `Usage: npm run chaos -- [scenario …] [--seed <n>] [--before <checkout>]

Faults under steady load: API nodes, workers, stores behind proxies and a recording upstream, all on this machine. After
every run the law of conservation is checked: one outcome for every request, every 200 carries its own number, usage
equals what callers got, and no cap was exceeded in any window. Without names, the scenarios above ${LONG_SCENARIOS[0]?.name} run, except short.

${ALL.map(({ name, about }) => `  ${name.padEnd(26)} ${about}`).join('\n')}

Exit code: 0 every claim held, 1 a claim did not hold, 2 a run could not be carried out.`

async function run(names: string[], seed: number, before: string | undefined): Promise<number> {
  const unknown = names.find((name) => !ALL.some((scenario) => scenario.name === name))
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}" (--help lists them)`)
  const chosen = names.length === 0 ? SCENARIOS : ALL.filter(({ name }) => names.includes(name))
  console.log(`seed ${seed}`)
  const broken: Claim[] = []
  for (const scenario of chosen) {
    console.log(`${scenario.name}: ${scenario.about}`)
    const claims = await runScenario(scenario, { seed, before, say: (line) => console.error(`  ${line}`) })
    for (const { what, value, bound, isHeld } of claims) {
      console.log(`  ${isHeld ? 'PASS' : 'FAIL'}  ${what}: ${Number(value.toFixed(3))} (${bound})`)
    }
    broken.push(...claims.filter(({ isHeld }) => !isHeld))
  }
  console.log(broken.length === 0 ? 'every claim held' : `${broken.length} claims did not hold`)
  return broken.length === 0 ? 0 : 1
}

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean' }, seed: { type: 'string' }, before: { type: 'string' } },
  })
  if (values.help) {
    console.log(HELP)
    process.exit(0)
  }
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed)
  if (!Number.isInteger(seed)) throw new Error('--seed must be a whole number')
  process.exit(await run(positionals, seed, values.before))
} catch (error) {
  console.error(`chaos: ${error instanceof Error ? error.message : error}`)
  process.exit(2)
}
