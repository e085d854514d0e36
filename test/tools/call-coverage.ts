/**
 * Prints which files and functions of `src` and `workers` a single call enters, by V8's precise
 * coverage of a gateway that runs inside this process. A function counts if each of several calls
 * entered it more often than any of several pauses without a call, so that timers of the processes
 * do not count. It also prints the source lines of the call path's folders, without blank lines and
 * comments. Usage: `node test/tools/call-coverage.ts [--files]`; with `--files` it lists the
 * functions of each file too.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { send } from '../support/client.ts'
import { recorded } from '../support/recorded.ts'
import { startStage } from '../support/stage.ts'

const ROOT = new URL('../../', import.meta.url)
const TIMES = 5
/** Time in which a process does the work after an answer, milliseconds. */
const AFTERWARDS_MS = 400
/**
 * Time in which the processes write everything that they have gathered about calls, milliseconds.
 */
const SETTLED_MS = 2_500
const WIDE = 'concurrency=256,1000000/1'
const FOLDERS_OF_PATH = ['src/async', 'src/caps', 'src/cache', 'src/calls', 'src/limits', 'src/queue', 'workers']
const FILES_OF_PATH = ['src/admission/forecast.ts', 'src/routes/call.ts', 'src/admission/admit.ts']

const profiler = new Session()
profiler.connect()

/** Names of functions by `file:offset`. */
const nameOf = new Map<string, string>()

/**
 * How often each function of the project was entered since this function last ran, by
 * `file:offset`.
 */
async function entered(): Promise<Map<string, number>> {
  const { result } = await profiler.post('Profiler.takePreciseCoverage')
  const counts = new Map<string, number>()
  for (const { url, functions } of result) {
    if (!url.startsWith(`${ROOT.href}src/`) && !url.startsWith(`${ROOT.href}workers/`)) continue
    for (const { ranges, functionName } of functions) {
      const [range] = ranges
      if (!range || range.count === 0) continue
      const name = `${url.slice(ROOT.href.length)}:${range.startOffset}`
      counts.set(name, range.count)
      nameOf.set(name, functionName || '(anonymous)')
    }
  }
  return counts
}

/** The functions that each of several calls entered. */
async function enteredByEach(call: () => Promise<void>): Promise<Set<string>> {
  for (let warmUp = 0; warmUp < 3; warmUp += 1) await call()
  // By then the processes have also written the counts of the warm-up calls.
  await delay(SETTLED_MS)
  const idle = await countsOf(() => Promise.resolve())
  const called = await countsOf(call)
  const isOfCall = (name: string): boolean => {
    const most = Math.max(...idle.map((counts) => counts.get(name) ?? 0))
    return called.every((counts) => (counts.get(name) ?? 0) > most)
  }
  return new Set([...(called[0]?.keys() ?? [])].filter(isOfCall))
}

/** Runs several times, and returns for each run how often each function was entered. */
async function countsOf(run: () => Promise<void>): Promise<Map<string, number>[]> {
  const all: Map<string, number>[] = []
  for (let time = 0; time < TIMES; time += 1) {
    await entered()
    await run()
    await delay(AFTERWARDS_MS)
    all.push(await entered())
  }
  return all
}

function namesIn(file: string, functions: Set<string>): string {
  return [...functions]
    .filter((name) => name.startsWith(`${file}:`))
    .map((name) => nameOf.get(name))
    .join(' ')
}

function linesOfPath(): { files: number; lines: number } {
  const listed = FOLDERS_OF_PATH.flatMap((folder) =>
    readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|lua)$/.test(name))
      .map((name) => join(folder, name)),
  )
  const all = [...listed, ...FILES_OF_PATH]
  const lines = all.map((name) => sourceLines(readFileSync(fileURLToPath(new URL(name, ROOT)), 'utf8')))
  return { files: all.length, lines: lines.reduce((sum, count) => sum + count, 0) }
}

/** The number of lines that are neither blank nor only a comment. */
function sourceLines(text: string): number {
  return text.split('\n').filter((line) => !/^\s*($|\/\/|\/?\*|--)/.test(line)).length
}

await profiler.post('Profiler.enable')
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const stage = await startStage({ isInProcess: true, caps: { 'random-facts': WIDE, weather: WIDE } })
try {
  stage.upstream.play('random-facts', () => recorded('random-facts'))
  stage.upstream.play('weather', () => recorded('weather'))
  const get = async (path: string): Promise<void> => {
    const { status, text } = await send(stage.gateway, path, { key: stage.account.live })
    if (status !== 200) throw new Error(`${path} was answered with ${status}: ${text}`)
  }
  let cell = 0
  const nextCell = (): number => {
    cell += 1
    return cell / 10
  }
  const kinds: [string, () => Promise<void>][] = [
    ['cacheable, not stored', () => get(`/v1/call/weather/current?latitude=${nextCell()}&longitude=7`)],
    ['not cacheable', () => get('/v1/call/random-facts/random')],
    ['stored answer', () => get('/v1/call/weather/current?latitude=0.1&longitude=7')],
  ]
  await get('/v1/call/weather/current?latitude=0.1&longitude=7')
  for (const [kind, call] of kinds) {
    const functions = await enteredByEach(call)
    const files = new Set([...functions].map((name) => name.slice(0, name.lastIndexOf(':'))))
    console.log(`${kind}: ${files.size} files, ${functions.size} functions`)
    if (process.argv.includes('--files'))
      console.log(
        [...files]
          .toSorted()
          .map((file) => `  ${file}: ${namesIn(file, functions)}`)
          .join('\n'),
      )
  }
  const { files, lines } = linesOfPath()
  console.log(`call path: ${lines} lines in ${files} files`)
} finally {
  await stage.stop()
}
