import { type Config, isLocalListener } from '../config.ts'
import type { DemoAccount } from './demo-account.ts'

/** Prints a line for the person at the terminal. */
export function print(text: string): void {
  console.log(`\u203a ${text}`)
}

export interface Welcome {
  config: Config
  /** Undefined if other machines can reach the service. */
  demo: DemoAccount | undefined
  /** The address at which the console listens. */
  consoleUrl: string
  operatorToken: string
  /** Path and query of a working example call; undefined if there is no API to read from. */
  examplePath: string | undefined
  /** Whether the following output has only calls and warnings, as at a terminal. */
  isBrief: boolean
  /** What setting CONTACT would give, for each API that would give more. */
  contactRules: string[]
  /** A sentence on which upstreams are reachable; undefined if this is not known yet. */
  reachable: string | undefined
}

/** The text when the service is up: its address, how to log in, and working calls to paste. */
export function welcomeText({
  config,
  demo,
  consoleUrl,
  operatorToken,
  examplePath,
  contactRules,
  reachable,
  isBrief,
}: Welcome): string {
  const { http, dataDir } = config
  const call = examplePath === undefined ? undefined : `${http.baseUrl}${examplePath}`
  const lines = [
    '',
    'The Agent API Gateway is up.',
    '',
    `  Portal       ${http.baseUrl}`,
    ...(demo === undefined ? [''] : demoLines(demo, call)),
    `  Docs         ${http.baseUrl}/docs`,
    `  MCP          ${http.baseUrl}/mcp (for agents; see ${http.baseUrl}/agents)`,
    `  Console      ${consoleUrl}`,
    // The token gives full access, so it is printed only if no other machine can reach the console.
    isLocalListener(http.opsHost)
      ? `               token ${operatorToken}`
      : `               token: OPERATOR_TOKEN in ${dataDir}/secrets.json`,
    '',
    ...(reachable === undefined ? [] : [`  ${reachable}`]),
    ...(contactRules.length === 0 ? [] : ['  CONTACT (your mail or web address) is not set:']),
    ...contactRules.map((words) => `    ${words}`),
    ...(isBrief ? ['  Below: calls and warnings; LOG_LEVEL=info shows every line.'] : []),
    '  Ctrl-C stops everything; your data stays in the data folder.',
    '',
  ]
  return lines.join('\n')
}

function demoLines({ email, password, live, test }: DemoAccount, call: string | undefined): string[] {
  const loginWords =
    password === undefined
      ? `${email}, whose password was changed (a new one: npm run operator -- new-password ${email})`
      : `${email} with ${password}`
  const login = `               log in as ${loginWords}`
  if (call === undefined) return [login, '', `  Demo keys    ${test}`, `               ${live}`, '']
  return [
    login,
    '',
    '  A call that a recorded example answers, without network (demo test key):',
    `    curl -H 'X-Api-Key: ${test}' '${call}'`,
    '',
    '  A call that reaches the real API (demo live key):',
    `    curl -H 'X-Api-Key: ${live}' '${call}'`,
    '',
  ]
}
