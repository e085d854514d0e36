import { randomUUID } from 'node:crypto'
import { send, signUp } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'

/**
 * Measures whether the time of a failed log-in gives away that an address has an account. It sends
 * log-ins of known and unknown addresses in turn, and prints both medians. Run it by hand (`node
 * test/bench/login-timing.ts [samples]`), because a time may decide no test.
 */
const samples = Number(process.argv[2] ?? 200)
const WARM_UP = 20

const gateway = await startGateway({ workers: 0 })
try {
  const { email } = await signUp(gateway)
  const known: number[] = []
  const unknown: number[] = []
  const failMs = async (address: string): Promise<number> => {
    const startedAt = performance.now()
    const { status } = await send(gateway, '/v1/auth/login', { body: { email: address, password: randomUUID() } })
    if (status !== 401) throw new Error(`expected 401, got ${status}`)
    return performance.now() - startedAt
  }
  for (let index = -WARM_UP; index < samples; index += 1) {
    // The order alternates, so that work after a request slows both kinds equally.
    const isKnownFirst = index % 2 === 0
    const first = await failMs(isKnownFirst ? email : `${randomUUID()}@example.com`)
    const second = await failMs(isKnownFirst ? `${randomUUID()}@example.com` : email)
    if (index < 0) continue
    known.push(isKnownFirst ? first : second)
    unknown.push(isKnownFirst ? second : first)
  }
  const ratio = median(known) / median(unknown)
  console.log(`samples of each   ${samples}`)
  console.log(`known, median     ${median(known).toFixed(2)} ms`)
  console.log(`unknown, median   ${median(unknown).toFixed(2)} ms`)
  console.log(`difference        ${((ratio - 1) * 100).toFixed(2)} %`)
} finally {
  await gateway.stop()
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return ((sorted[Math.floor((sorted.length - 1) / 2)] ?? 0) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0)) / 2
}
