import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startChild } from './child.ts'
import { type TargetRequest, wrkScript } from './target.ts'

/** The requests to send. */
export interface LoadRequest extends TargetRequest {
  connections: number
  seconds: number
  /** The first number for `{n}`, so that no two runs send the same requests. */
  firstNumber: number
}

/** The answers that arrived. */
export interface LoadResult {
  /** How many answers were right. */
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

/**
 * Starts `wrk` if it is installed, because it needs least of the machine. Otherwise a client of our
 * own in its own process.
 */
export async function startLoadGenerator(useWrk: boolean): Promise<LoadGenerator> {
  // `wrk --version` prints its version and ends with 1.
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

async function runWrk(request: LoadRequest): Promise<LoadResult> {
  const { urls, headers, connections, seconds, status, firstNumber } = request
  const folder = await mkdtemp(join(tmpdir(), 'agw-wrk-'))
  const script = join(folder, 'request.lua')
  await writeFile(script, wrkScript(urls, headers, firstNumber))
  const flags = ['-t1', `-c${connections}`, `-d${Math.ceil(seconds)}s`, '--latency', '--timeout', '30s', '-s', script]
  try {
    const { stdout } = await execute('wrk', [...flags, new URL(urls[0]?.replaceAll(/[{}]/g, '_') ?? '').origin])
    return readWrk(stdout, status < 300)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/**
 * Reads the output of wrk, which only tells 2xx and 3xx apart from other statuses. If the run
 * expects refusals, each refusal counts as a call, and each success as a failure.
 */
export function readWrk(text: string, expectsSuccess = true): LoadResult {
  const [, requests = '0', seconds = '1', unit = 's'] = /(\d+) requests in ([\d.]+)(m?s)/.exec(text) ?? []
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0)
  const failed = expectsSuccess ? refused : Number(requests) - refused
  const sockets = /Socket errors: (.*)/.exec(text)?.[1]
  const calls = Number(requests) - failed
  return {
    calls,
    callsPerSecond: calls / (Number(seconds) / (unit === 'ms' ? 1_000 : 1)),
    p50Ms: latency(text, '50'),
    p99Ms: latency(text, '99'),
    failures: {
      ...(failed > 0 ? { [expectsSuccess ? 'not 2xx' : 'not refused']: failed } : {}),
      ...(sockets ? { [sockets]: 1 } : {}),
    },
  }
}

const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1_000, m: 60_000 }

function latency(text: string, percent: string): number {
  const [, value = 'NaN', unit = 'ms'] = new RegExp(`\\n\\s+${percent}%\\s+([\\d.]+)(us|ms|s|m)`).exec(text) ?? []
  return Number(value) * (UNIT_MS[unit] ?? 1)
}
