import { type Config, isLocalListener } from '../config.ts'
import type { DemoAccount } from './demo-account.ts'

/** Prints what happens, for the person at the terminal. */
export function print(text: string): void {
  console.log(`\u203a ${text}`)
}

export interface Welcome {
  config: Config
  /** Undefined if the service is not for this machine alone. */
  demo: DemoAccount | undefined
  /** The address on which the console really listens. */
  consoleUrl: string
  operatorToken: string
  /** Path and query of a call that works as it stands; undefined if no API can be read. */
  examplePath: string | undefined
  /** Whether what follows is calls and warnings alone, as at a terminal. */
  isBrief: boolean
  /** What naming a contact would give, of each API if it gives something. */
  lackedContacts: string[]
  /** One sentence on which upstreams answer; undefined if that is not known yet. */
  reachable: string | undefined
}

/**
 * What a person needs to know when the service is up: its address, how to log in, and calls that
 * work when pasted.
 */
export function welcomeText({
  config,
  demo,
  consoleUrl,
  operatorToken,
  examplePath,
  lackedContacts,
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
    `  MCP          ${http.baseUrl}/mcp (for agents; ${http.baseUrl}/agents says how)`,
    `  Console      ${consoleUrl}`,
    // The token opens everything: it is printed only if this machine alone can use it.
    isLocalListener(http.opsHost)
      ? `               token ${operatorToken}`
      : `               token: OPERATOR_TOKEN in ${dataDir}/secrets.json`,
    '',
    ...(reachable === undefined ? [] : [`  ${reachable}`]),
    ...(lackedContacts.length === 0 ? [] : ['  CONTACT (a mail or web address of yours) is not set:']),
    ...lackedContacts.map((words) => `    ${words}`),
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
    '  A call answered from a recorded example, without network (demo test key):',
    `    curl -H 'X-Api-Key: ${test}' '${call}'`,
    '',
    '  A call that reaches the real API (demo live key):',
    `    curl -H 'X-Api-Key: ${live}' '${call}'`,
    '',
  ]
}
