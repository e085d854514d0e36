import { styleText } from 'node:util'
import type { Config } from '../config.ts'
import type { DemoAccount } from './demo-account.ts'

/** Tells the person at the terminal what happens. */
export function say(text: string): void {
  console.log(`\u203a ${text}`)
}

/** Where lines go: a terminal shows what a person needs, anything else gets every line. */
export interface OutputOptions {
  isTerminal: boolean
  /** Every line, also at a terminal: somebody set LOG_LEVEL. */
  isVerbose: boolean
}

/** Levels from which a line is shown at a terminal. */
const SHOWN_LEVELS: Record<string, 'yellow' | 'red'> = { warn: 'yellow', error: 'red', fatal: 'red' }

/**
 * A line of a process as it is printed: JSON lines as they are where a program reads them; at a terminal in words, and
 * only calls and what is wrong. Undefined for a line that is not shown.
 */
export function formatLine(label: string, line: string, { isTerminal, isVerbose }: OutputOptions): string | undefined {
  const entry = parseEntry(line)
  if (!isTerminal) return entry ? line : `${label}: ${line}`
  const prefix = styleText('dim', label.padEnd(8), { validateStream: false })
  // Not one of our lines: something went wrong before there was a log.
  if (!entry) return `${prefix} ${line}`
  const color = SHOWN_LEVELS[String(entry.level)]
  if (entry.msg === 'call') return `${prefix} ${callWords(entry)}`
  if (!color && !isVerbose) return undefined
  const words = entryWords(entry)
  return `${prefix} ${color ? styleText(color, `${String(entry.level).toUpperCase()} ${words}`, { validateStream: false }) : words}`
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** `weather/current 200 in 31 ms (test)`; of a failure its code and cause. */
function callWords({ slug, endpoint, status, code, reason, ms, mode, cache }: Record<string, unknown>): string {
  const marks = [mode === 'test' ? 'test' : '', /^agw; hit/.test(String(cache)) ? 'stored' : ''].filter(Boolean)
  const failure = code === undefined ? '' : ` ${code}${reason === undefined ? '' : ` (${reason})`}`
  const words = `${slug}${endpoint ?? ''} ${status}${failure} in ${Math.round(Number(ms))} ms`
  return marks.length > 0 ? `${words} (${marks.join(', ')})` : words
}

/** Message and members; of an error its message, not its stack. */
function entryWords({ level: _level, time: _time, process: _process, msg, ...rest }: Record<string, unknown>): string {
  const details = Object.entries(rest).map(([name, value]) => {
    const isError = name === 'err' && typeof value === 'object' && value !== null
    if (isError) return `(${Object(value).message})`
    return `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`
  })
  return [msg ?? '', ...details].join(' ')
}

export interface Welcome {
  config: Config
  /** Undefined where the service is not for this machine alone. */
  demo: DemoAccount | undefined
  /** Where the console really listens. */
  consoleUrl: string
  operatorToken: string
  /** Path and query of a call that works as it stands. */
  examplePath: string
  /** One sentence on which upstreams answer; undefined where that is not known yet. */
  reachable: string | undefined
}

/** What a person needs to know when the service is up: where it is, how to log in, and calls that work when pasted. */
export function printWelcome({ config, demo, consoleUrl, operatorToken, examplePath, reachable }: Welcome): void {
  const { http, dataDir } = config
  const call = `${http.baseUrl}${examplePath}`
  // The token opens everything: it is printed where only this machine can use it.
  const isLoopback = /^https?:\/\/(127\.|localhost|\[::1\])/.test(consoleUrl)
  const lines = [
    '',
    'The Agent API Gateway is up.',
    '',
    `  Portal       ${http.baseUrl}`,
    ...(demo === undefined ? [''] : demoLines(demo, call)),
    `  Docs         ${http.baseUrl}/docs`,
    `  MCP          ${http.baseUrl}/mcp (for agents; ${http.baseUrl}/agents says how)`,
    `  Console      ${consoleUrl}`,
    isLoopback
      ? `               token ${operatorToken}`
      : `               token: OPERATOR_TOKEN in ${dataDir}/secrets.json`,
    '',
    ...(reachable === undefined ? [] : [`  ${reachable}`]),
    '  Below: calls and warnings; LOG_LEVEL=info shows every line.',
    '  Ctrl-C stops everything; data stay in the data folder.',
    '',
  ]
  console.log(lines.join('\n'))
}

function demoLines({ email, password, live, test }: DemoAccount, call: string): string[] {
  return [
    `               log in as ${email} with ${password}`,
    '',
    '  A call answered from a recorded example, without network (demo test key):',
    `    curl -H 'X-Api-Key: ${test}' '${call}'`,
    '',
    '  A call that reaches the real API (demo live key):',
    `    curl -H 'X-Api-Key: ${live}' '${call}'`,
    '',
  ]
}
