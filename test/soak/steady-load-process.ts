import { setTimeout as delay } from 'node:timers/promises'
import { ask } from './ask.ts'
import type { SteadyResult } from './steady-load.ts'

/** What to send. */
export interface SteadyRequest {
  /** Taken in turn. */
  urls: string[]
  headers: Record<string, string>
  perSecond: number
  seconds: number
}

/** The calls with the same outcome. Times in milliseconds. */
export interface OutcomeTimes {
  count: number
  p50: number
  p99: number
  max: number
}

/** Time between two ticks, milliseconds. Each tick sends the calls that are due. */
const TICK_MS = 5

process.on('message', async (asked: SteadyRequest) => process.send?.(await offer(asked)))
process.on('disconnect', () => process.exit(0))

async function offer({ urls, headers, perSecond, seconds }: SteadyRequest): Promise<SteadyResult> {
  const times = new Map<string, number[]>()
  const call = async (url: string): Promise<void> => {
    const sentAt = performance.now()
    const outcome = await ask(url, headers)
    const known = times.get(outcome)
    if (known) known.push(performance.now() - sentAt)
    else times.set(outcome, [performance.now() - sentAt])
  }
  const calls: Promise<void>[] = []
  const startedAt = performance.now()
  while (performance.now() - startedAt < seconds * 1_000) {
    const due = Math.ceil(((performance.now() - startedAt) / 1_000) * perSecond)
    while (calls.length < due) calls.push(call(urls[calls.length % urls.length] ?? ''))
    await delay(TICK_MS)
  }
  await Promise.all(calls)
  return {
    sent: calls.length,
    seconds: (performance.now() - startedAt) / 1_000,
    outcomes: Object.fromEntries([...times].map(([outcome, took]) => [outcome, summary(took)])),
  }
}

function summary(took: number[]): OutcomeTimes {
  const sorted = took.toSorted((left, right) => left - right)
  const at = (share: number): number =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}
