import { startGateway } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { choose, HELP, SECONDS } from './command-line.ts'
import type { Scenario } from './scenario.ts'

async function attack(scenarios: Scenario[]): Promise<number> {
  let failed = 0
  for (const scenario of scenarios) {
    if (!(await isHeld(scenario))) failed += 1
  }
  return failed === 0 ? 0 : 1
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
  const scenarios = choose(process.argv.slice(2))
  if (scenarios) process.exit(await attack(scenarios))
  console.log(HELP)
  process.exit(0)
} catch (error) {
  console.error(`attack: ${error instanceof Error ? error.message : error}`)
  process.exit(2)
}
