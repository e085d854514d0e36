import { setTimeout as delay } from 'node:timers/promises'
import type { Claim } from '../soak/scenario.ts'
import { checkConservation } from './conservation.ts'
import { timeline } from './measures.ts'
import { startRig } from './rig.ts'
import type { ChaosScenario } from './scenario.ts'

/** Faults begin when the load has run for a while, milliseconds. */
const BEFORE_MS = 2_000

/** Runs one scenario from a fresh deployment to its claims. */
export async function runScenario(
  scenario: ChaosScenario,
  { seed, say, before }: { seed: number; say: (line: string) => void; before?: string | undefined },
): Promise<Claim[]> {
  const { webNodes = 2, workers = 2, environment = {}, diskMb } = scenario
  if (scenario.isUpgrade && before === undefined) throw new Error(`${scenario.name} needs --before <checkout>`)
  const versions = scenario.isUpgrade ? { before } : {}
  const rig = await startRig({ webNodes, workers, seed, say, environment, diskMb, ...versions })
  try {
    const { perSecond, seconds, patienceMs, impatient } = scenario
    const patience = { ...(patienceMs === undefined ? {} : { patienceMs }), ...(impatient ? { impatient } : {}) }
    const offering = scenario.offer?.(rig) ?? rig.offer({ perSecond, seconds, ...patience })
    await delay(BEFORE_MS)
    await scenario.faults(rig)
    const records = await offering
    const claims = [
      ...(await checkConservation(rig, records, scenario.allow)),
      ...((await scenario.claims?.(records, rig)) ?? []),
    ]
    if (claims.some(({ isHeld }) => !isHeld)) for (const line of timeline(records)) say(line)
    return claims
  } finally {
    await rig.stop()
  }
}
