import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { startChild } from './child.ts'

/** What to send. */
export interface LoadRequest {
  url: string
  headers: Record<string, string>
  connections: number
  seconds: number
}

/** What came back. */
export interface LoadResult {
  /** Answers of 2xx. */
  calls: number
  callsPerSecond: number
  p50Ms: number
  p99Ms: number
  /** Other answers, by status or error. */
  failures: Record<string, number>
}

export interface LoadGenerator {
  name: string
  run: (request: LoadRequest) => Promise<LoadResult>
  stop: () => void
}

const execute = promisify(execFile)

/** `wrk` where it is installed, for it costs least; else a client of our own in its own process. */
export async function startLoadGenerator(useWrk: boolean): Promise<LoadGenerator> {
  // It prints its version and ends with 1.
  const found = await execute('wrk', ['--version']).catch((error: { stdout?: string }) => error)
  if (useWrk && found.stdout?.startsWith('wrk')) return { name: 'wrk', run: runWrk, stop: () => undefined }
  const { child } = await startChild('load-process.ts', {})
  return {
    name: 'node:http',
    run: async (request) => {
      child.send(request)
      const [result] = await once(child, 'message', { signal: AbortSignal.timeout(request.seconds * 1_000 + 60_000) })
      return result as LoadResult
    },
    stop: () => void child.kill('SIGKILL'),
  }
}

async function runWrk({ url, headers, connections, seconds }: LoadRequest): Promise<LoadResult> {
  const named = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const flags = ['-t1', `-c${connections}`, `-d${Math.ceil(seconds)}s`, '--latency', '--timeout', '30s']
  const { stdout } = await execute('wrk', [...flags, ...named, url])
  return readWrk(stdout)
}

/** Reads what wrk prints. */
export function readWrk(text: string): LoadResult {
  const [, requests = '0', seconds = '1', unit = 's'] = /(\d+) requests in ([\d.]+)(m?s)/.exec(text) ?? []
  const failed = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0)
  const sockets = /Socket errors: (.*)/.exec(text)?.[1]
  const calls = Number(requests) - failed
  return {
    calls,
    callsPerSecond: calls / (Number(seconds) / (unit === 'ms' ? 1_000 : 1)),
    p50Ms: latency(text, '50'),
    p99Ms: latency(text, '99'),
    failures: { ...(failed > 0 ? { 'not 2xx': failed } : {}), ...(sockets ? { [sockets]: 1 } : {}) },
  }
}

const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1_000, m: 60_000 }

function latency(text: string, percent: string): number {
  const [, value = 'NaN', unit = 'ms'] = new RegExp(`\\n\\s+${percent}%\\s+([\\d.]+)(us|ms|s|m)`).exec(text) ?? []
  return Number(value) * (UNIT_MS[unit] ?? 1)
}
