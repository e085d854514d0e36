import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import type { Caps, Upstream } from '../../src/catalog/upstream.ts'
import { specTable } from '../support/spec-table.ts'
import { driftOf } from './live-drift.ts'
import { progress, type Result, summary, table } from './live-report.ts'

const HELP = `Usage: npm run live -- [options] [slug ...]

Calls every endpoint of the catalog once through a running gateway, with its example parameters, and compares the
answers with the recorded ones. Calls the real upstreams: needs a network, a gateway (npm start) and a live key, which
npm start prints. With slugs, only those APIs.

  --url <url>   address of the gateway    GATEWAY_URL, or http://localhost:3000
  --key <key>   live API key              GATEWAY_KEY
  --strict      drift is a failure
  --help        this text

Calls are spaced so that no upstream is asked more often than it allows, and the plan's own limit is waited for: all
APIs on a Free plan take about five minutes. An API that needs a key or plan this gateway does not have is skipped.

Drift: a field of the specification that had a value when it was recorded and has none now, or a declared member that
is missing or of another type.

Exit code: 0 all answered, 1 something failed, 2 the run could not start.`

/** What a run needs from its process. A test passes its own clock. */
export interface Surroundings {
  argv: string[]
  environment: Record<string, string | undefined>
  print: (line: string) => void
  now: () => number
  wait: (ms: number) => Promise<void>
}

interface Gateway {
  url: string
  key: string
}

interface Step {
  slug: string
  path: string
  upstream: Upstream
  endpoint: Endpoint
}

/** Codes with which the gateway refuses a call although nothing is wrong. */
const SKIP_CODES = new Set(['API_NOT_ENABLED', 'PLAN_UPGRADE_REQUIRED', 'PROVIDER_KEY_REQUIRED'])
/** Codes of refusals after which the same call succeeds later. */
const PATIENCE_CODES = new Set([
  'RATE_LIMIT_EXCEEDED',
  'CONCURRENCY_LIMIT_EXCEEDED',
  'UPSTREAM_CAP_EXHAUSTED',
  'OVERLOADED',
  'DRAINING',
])
const TRIES_MAX = 4
const PATIENCE_MS_MAX = 120_000
const CALL_TIMEOUT_MS = 60_000

/** Runs the tool and returns its exit code. */
export async function runLive(surroundings: Surroundings): Promise<number> {
  const { print, environment } = surroundings
  try {
    const { values, positionals } = readArguments(surroundings.argv)
    if (values.help) {
      print(HELP)
      return 0
    }
    const url = (values.url ?? environment.GATEWAY_URL ?? 'http://localhost:3000').replace(/\/+$/, '')
    const key = values.key ?? environment.GATEWAY_KEY
    if (!key) throw new CannotStart('No key: give --key or GATEWAY_KEY. See --help.')
    const gateway = { url, key }
    const steps = await planSteps(gateway, positionals)
    if (key.startsWith('agw_test_')) print('A test key is answered from the recordings: no upstream will be asked.')
    const results = await callAll(gateway, steps, surroundings)
    print('')
    for (const line of table(results)) print(line)
    print('')
    print(summary(results))
    const isFailure = ({ outcome, drift }: Result) => outcome === 'failed' || (values.strict && drift.length > 0)
    return results.some(isFailure) ? 1 : 0
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error
    print(error.message)
    return 2
  }
}

class CannotStart extends Error {}

function readArguments(argv: string[]) {
  try {
    const options = {
      url: { type: 'string' },
      key: { type: 'string' },
      strict: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    } as const
    return parseArgs({ args: argv, options, allowPositionals: true })
  } catch (cause) {
    throw new CannotStart(`${reasonOf(cause)}. See --help.`, { cause })
  }
}

/**
 * Makes a step for each endpoint that the gateway lists. The first endpoints of all APIs go first,
 * which spreads the load.
 */
async function planSteps(gateway: Gateway, slugs: string[]): Promise<Step[]> {
  const listed = await listApis(gateway)
  const unknown = slugs.filter((slug) => !listed.some(({ api_name }) => api_name === slug))
  if (unknown.length > 0) {
    const known = listed.map(({ api_name }) => api_name).join(', ')
    throw new CannotStart(`The gateway has no API named ${unknown.join(', ')}. It has: ${known}.`)
  }
  const upstreams = await loadUpstreams()
  return listed
    .filter(({ api_name }) => slugs.length === 0 || slugs.includes(api_name))
    .flatMap(({ api_name: slug, endpoints }) => endpoints.map(({ path }, place) => ({ slug, path, place })))
    .sort((one, other) => one.place - other.place)
    .map(({ slug, path }) => {
      const upstream = upstreams.get(slug)
      const endpoint = upstream?.endpoints[path]
      if (!upstream || !endpoint) {
        throw new CannotStart(`The gateway lists ${slug} ${path}, which is not in these sources: run the same version.`)
      }
      return { slug, path, upstream, endpoint }
    })
}

async function listApis({ url }: Gateway): Promise<{ api_name: string; endpoints: { path: string }[] }[]> {
  try {
    const response = await fetch(`${url}/v1/catalog`, { signal: AbortSignal.timeout(CALL_TIMEOUT_MS) })
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    const { data } = (await response.json()) as { data: { api_name: string; endpoints: { path: string }[] }[] }
    return data
  } catch (cause) {
    throw new CannotStart(`No catalog at ${url}/v1/catalog (${reasonOf(cause)}). Is the gateway running?`, { cause })
  }
}

async function callAll(gateway: Gateway, steps: Step[], surroundings: Surroundings): Promise<Result[]> {
  const { print, now, wait } = surroundings
  const asked = new Map<string, number[]>()
  const results: Result[] = []
  for (const step of steps) {
    const times = asked.get(step.slug) ?? []
    const pauseMs = pauseFor(step.upstream.caps, times, now())
    if (pauseMs > 0) {
      print(`${' '.repeat(9)} waiting ${seconds(pauseMs)} s: ${step.slug} is asked no faster than it allows`)
      await wait(pauseMs)
    }
    asked.set(step.slug, [...times, now()])
    const result = await callPatiently(gateway, step, surroundings)
    results.push(result)
    print(progress(result, results.length, steps.length))
  }
  return results
}

/** Milliseconds until another request keeps within every rate. */
export function pauseFor({ rates }: Caps, times: number[], now: number): number {
  const pauses = rates.map(({ max, seconds }) => {
    // There is room as soon as the oldest of the last `max` requests has left the window.
    const oldest = times.at(-max)
    return oldest === undefined ? 0 : oldest + seconds * 1_000 - now
  })
  return Math.max(0, ...pauses)
}

async function callPatiently(gateway: Gateway, step: Step, { print, wait }: Surroundings): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    const { result, retryAfterMs } = await call(gateway, step)
    if (result.status === 401) throw new CannotStart(`The gateway refuses the key (${result.code}).`)
    const isWorthWaiting = PATIENCE_CODES.has(result.code) && retryAfterMs !== undefined
    if (!isWorthWaiting || tries === TRIES_MAX || retryAfterMs > PATIENCE_MS_MAX) return result
    print(`${' '.repeat(9)} waiting ${seconds(retryAfterMs)} s: ${result.code} for ${step.slug} ${step.path}`)
    await wait(retryAfterMs)
  }
}

async function call(
  { url, key }: Gateway,
  { slug, path, endpoint }: Step,
): Promise<{ result: Result; retryAfterMs?: number }> {
  const query = new URLSearchParams(
    Object.entries(endpoint.example.parameters).map(([name, value]): [string, string] => [name, String(value)]),
  )
  const startedAt = performance.now()
  const result: Result = { slug, path, outcome: 'failed', status: undefined, code: '', ms: 0, drift: [] }
  try {
    const response = await fetch(`${url}/v1/call/${slug}${path}?${query}`, {
      headers: { 'x-api-key': key },
      redirect: 'manual',
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    })
    result.status = response.status
    const body = (await response.json()) as { status?: string; data?: unknown; error?: { code?: string } }
    if (response.status === 200 && body.status === 'success') {
      result.outcome = 'ok'
      result.code = response.headers.get('cache-status')?.includes('hit') ? 'cached' : ''
      result.drift = driftOf(endpoint, specTable[slug]?.[path]?.data ?? [], body.data)
      return { result }
    }
    result.code = body.error?.code ?? 'NO_CODE'
    if (SKIP_CODES.has(result.code)) result.outcome = 'skipped'
    const retryAfterMs = Number(response.headers.get('retry-after') ?? Number.NaN) * 1_000
    return Number.isFinite(retryAfterMs) ? { result, retryAfterMs } : { result }
  } catch (error) {
    result.code = error instanceof SyntaxError ? 'NOT_JSON' : reasonOf(error)
    return { result }
  } finally {
    result.ms = Math.round(performance.now() - startedAt)
  }
}

/**
 * The code of a network error, which `fetch` hides in a cause. If there is no code, the error as
 * text.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = Reflect.get(error.cause ?? {}, 'code')
  return typeof code === 'string' ? code : error.message
}

const seconds = (ms: number): number => Math.ceil(ms / 1_000)

if (import.meta.main) {
  process.exitCode = await runLive({
    argv: process.argv.slice(2),
    environment: process.env,
    print: (line) => console.log(line),
    now: Date.now,
    wait: (ms) => delay(ms),
  })
}
