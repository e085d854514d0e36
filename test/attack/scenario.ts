import { readFile } from 'node:fs/promises'
import type { Gateway } from '../support/gateway.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

/** Bytes of a page of Linux. */
const PAGE_BYTES = 4_096

/** An attack, and what must hold while it lasts. */
export interface Scenario {
  /** Word of the command line that runs it alone. */
  name: string
  /** What must hold, as a sentence. */
  claim: string
  /** Settings that the gateway needs for it. */
  environment?: Record<string, string>
  /** Options of Node for its processes. */
  execArgv?: string[]
  /** Upstreams that a server on this machine plays. */
  slugs?: string[]
  /** `seconds` bounds the attack: ten by default, a second or two in `npm test`. */
  run: (gateway: Gateway, seconds: number, upstream?: UpstreamServer) => Promise<Outcome>
}

export interface Outcome {
  isPassed: boolean
  figures: Record<string, string | number>
}

/** The value that the share of the values does not exceed; 0 if there are no values. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

/** Resident memory of a process, MB. */
export async function residentMb(pid: number): Promise<number> {
  const [, pages] = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')
  return (Number(pages) * PAGE_BYTES) / 1e6
}
