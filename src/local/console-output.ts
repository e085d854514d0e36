import type { Config } from '../config.ts'
import type { DemoAccount } from './demo-account.ts'
import type { Secrets } from './secrets.ts'

/** Tells the person at the terminal what happens. */
export function say(text: string): void {
  console.log(`\u203a ${text}`)
}

const LEVEL_MARKS: Record<string, string> = { warn: 'WARN ', error: 'ERROR ', fatal: 'FATAL ' }

/**
 * Prints a line of a process: JSON lines as they are where a program reads them; on a terminal under the process's
 * label, in words.
 */
export function printLine(label: string, line: string): void {
  if (!process.stdout.isTTY) {
    console.log(line.startsWith('{') ? line : `${label}: ${line}`)
    return
  }
  console.log(`\u001b[2m${label.padEnd(8)}\u001b[0m ${inWords(line)}`)
}

function inWords(line: string): string {
  try {
    const { level, time: _time, process: _process, msg, ...rest } = JSON.parse(line)
    const details = Object.entries(rest).map(
      ([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`,
    )
    return [`${LEVEL_MARKS[level] ?? ''}${msg ?? ''}`, ...details].join(' ')
  } catch {
    // Not one of our lines: shown as it is.
    return line
  }
}

function callsToPaste(demo: DemoAccount, call: string): string[] {
  return [
    '  A call that reaches the real API (demo live key):',
    '',
    `    curl -H 'X-Api-Key: ${demo.live}' '${call}'`,
    '',
    '  A call answered from a recorded example, without network (demo test key):',
    '',
    `    curl -H 'X-Api-Key: ${demo.test}' '${call}'`,
    '',
  ]
}

/** What a person needs to know when the service is up: where it is, and a call that works when pasted. */
export function printWelcome({ http, dataDir }: Config, demo: DemoAccount | undefined, _secrets: Secrets): void {
  const call = `${http.baseUrl}/v1/call/weather/current?latitude=40.71&longitude=-74.01`
  const lines = [
    '',
    'The Agent API Gateway is up.',
    '',
    `  Address      ${http.baseUrl}`,
    `  Docs         ${http.baseUrl}/docs`,
    `  MCP          ${http.baseUrl}/mcp`,
    `  Console      http://${http.opsHost}:${http.opsPort}  (operator token: OPERATOR_TOKEN in ${dataDir}/secrets.json)`,
    '',
    ...(demo === undefined ? [] : callsToPaste(demo, call)),
    '  Ctrl-C stops everything; data stay in the data folder.',
    '',
  ]
  console.log(lines.join('\n'))
}
