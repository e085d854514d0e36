import { atMost, type Claim } from '../soak/scenario.ts'
import type { CallRecord } from './load.ts'

/** Calls to the upstream with the wide cap, and to the upstream with the narrow cap. */
export const weatherOf = (records: CallRecord[]): CallRecord[] => records.filter(({ flow }) => flow === 'weather')
export const othersOf = (records: CallRecord[]): CallRecord[] => records.filter(({ flow }) => flow !== 'weather')

/** Claims that no time between two answers of 200 is longer than `maxSeconds`. */
export function recovery(records: CallRecord[], maxSeconds: number): Claim {
  const good = records.filter(({ outcome }) => outcome === '200').map(({ sentAt, tookMs }) => sentAt + tookMs)
  const last = Math.max(...records.map(({ sentAt }) => sentAt))
  const moments = [...good.sort((left, right) => left - right), last]
  const gaps = moments.map((at, index) => at - (moments[index - 1] ?? at))
  return atMost('longest time without a success, seconds', Math.max(0, ...gaps) / 1_000, maxSeconds)
}

/** Share of the calls that were answered 200. */
export function shareAnswered(records: CallRecord[]): number {
  return records.filter(({ outcome }) => outcome === '200').length / records.length
}

/** How many calls of the last second were answered 200. */
export function lastAnswered(records: CallRecord[]): number {
  const last = Math.max(...records.map(({ sentAt }) => sentAt))
  return records.filter(({ outcome, sentAt }) => outcome === '200' && sentAt > last - 1_000).length
}

/** A percentile of the calls' times, milliseconds. */
export function percentile(records: CallRecord[], share: number): number {
  const times = records.map(({ tookMs }) => tookMs).sort((left, right) => left - right)
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
}

/** The outcome of the calls, second by second. The run shows it if a claim does not hold. */
export function timeline(records: CallRecord[]): string[] {
  const startsAt = Math.min(...records.map(({ sentAt }) => sentAt))
  const seconds: Record<string, number>[] = []
  for (const { sentAt, outcome } of records) {
    const second = Math.floor((sentAt - startsAt) / 1_000)
    const counts = seconds[second] ?? {}
    counts[outcome] = (counts[outcome] ?? 0) + 1
    seconds[second] = counts
  }
  return Array.from(seconds, (counts = {}, second) => `second ${second}: ${JSON.stringify(counts)}`)
}
