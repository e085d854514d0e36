import { parseArgs } from 'node:util'
import { nearestName } from '../catalog/nearest-name.ts'

export const HELP = `The operator's command line: a client of the operator API.

  npm run operator -- <command> [arguments]
                                          npm first prints two lines of its own; --silent leaves them out, for a file:
                                          npm run --silent operator -- export > gateway.yaml
                                          in a container: node src/operator-cli.ts <command> [arguments]

Accounts
  accounts [part of an email] [--unapproved]
                                          find accounts, newest first, or accounts neither approved nor disabled
                                          state: unverified (email), verified, approved or disabled
  account <id or email>                   show an account: calls by API, last failures, keys, connections
  account <id or email> [--tier T] [--disable | --enable] [--approve | --disapprove]
                                          change an account; T: developer, pro, business, enterprise
                                          approved: its live calls need no verified email
  account <id or email> --reset-link      print a link that sets a new password, once, within 30 minutes
  new-password <id or email>              set and print a new password, and end the sessions of the account
  revoke-key <id>                         revoke a key of any account, on every node at once

Calls
  call <id>                               show the outcome and the timing of a call, by X-Call-Id or X-Request-Id;
                                          exit code 1 if the log does not have the call

Upstreams
  upstreams                               list the upstreams with the settings in force
  upstream <slug> [--tier T] [--enable | --disable] [--caps C] [--key-file F]
                                          show an upstream, or change it with an option
                                          C: concurrency=4,60/3600,10/60 (requests/seconds)
                                          F: file that holds the key; - reads it from standard input
  reset <slug>                            reset its settings to its file and the environment, and delete its stored key
  pause <slug> [--hold]                   refuse its calls (503 API_PAUSED), or hold them in the queue with --hold
  resume <slug>                           run its calls again
  probe <slug>                            probe it now, and print the result
  apply <file> [--check]                  apply settings of many upstreams from a YAML file: all changes or none
                                          upstreams: { news: { enabled, tierRequired, caps, paused, key: { env | file } } }
                                          --check changes nothing; exit code 0: no difference, 2: a difference,
                                          1: an invalid file; - reads the file from standard input
  export                                  print what operators have set as such a file; it names APIs with a stored
                                          key, but contains no key

Own APIs
  check <file> [--overlay F]              check an OpenAPI document: print its errors, the parts that are left out and
                                          its catalog entry; needs no running gateway; exit code 1 if it has errors
                                          F: by default <name>.overlay.yaml or .json beside the file
  check <folder>                          check all documents of a folder, and names that two of them use

Users
  notice [text] [--until T] [--end]       show a text on the pages of the portal until T, end it, or print it
                                          T: a time such as 2026-12-01T06:00:00Z, at most 90 days ahead

Fleet
  status                                  print only the problems that need attention; exit code 1 while callers get errors
  overview                                print health, queues, caps left and failures of each API
  queue <slug>                            print its calls in the order in which they run, and its probes
  top                                     print the accounts with the most live calls in the last hour
  audit [--limit N]                       print the latest changes

Options
  --json                                  print the answer as JSON
  --url http://host:port                  address of the operator API (default: OPS_HOST and OPS_PORT, or where
                                          npm start with the same data folder listens)

The token is OPERATOR_TOKEN, or the token that npm start keeps in the data folder.
`

/** A mistake of the person at the terminal. It is printed without a stack trace. */
export class UsageError extends Error {}

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  url: { type: 'string' },
  tier: { type: 'string' },
  enable: { type: 'boolean' },
  disable: { type: 'boolean' },
  approve: { type: 'boolean' },
  disapprove: { type: 'boolean' },
  'reset-link': { type: 'boolean' },
  unapproved: { type: 'boolean' },
  caps: { type: 'string' },
  'key-file': { type: 'string' },
  limit: { type: 'string' },
  until: { type: 'string' },
  end: { type: 'boolean' },
  hold: { type: 'boolean' },
  overlay: { type: 'string' },
  check: { type: 'boolean' },
} as const

export type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

interface CommandSyntax {
  /** Whether the command needs an account or an upstream. */
  subject: boolean
  options: (keyof Values)[]
}

/** Other names of commands, because the operator API calls an account a user. */
const ALIASES = new Map([
  ['users', 'accounts'],
  ['user', 'account'],
])

/** Options of every command. */
const COMMON: (keyof Values)[] = ['help', 'json', 'url']

/** Options that contradict each other. */
const CONTRADICTIONS: [keyof Values, keyof Values][] = [
  ['enable', 'disable'],
  ['approve', 'disapprove'],
  ['end', 'until'],
]

const COMMAND_SYNTAX = {
  accounts: { subject: true, options: ['unapproved'] },
  account: { subject: true, options: ['tier', 'disable', 'enable', 'approve', 'disapprove', 'reset-link'] },
  'new-password': { subject: true, options: [] },
  'revoke-key': { subject: true, options: [] },
  call: { subject: true, options: [] },
  upstreams: { subject: false, options: [] },
  upstream: { subject: true, options: ['tier', 'enable', 'disable', 'caps', 'key-file'] },
  reset: { subject: true, options: [] },
  pause: { subject: true, options: ['hold'] },
  resume: { subject: true, options: [] },
  probe: { subject: true, options: [] },
  check: { subject: true, options: ['overlay'] },
  apply: { subject: true, options: ['check'] },
  export: { subject: false, options: [] },
  status: { subject: false, options: [] },
  overview: { subject: false, options: [] },
  queue: { subject: true, options: [] },
  top: { subject: false, options: [] },
  notice: { subject: true, options: ['until', 'end'] },
  audit: { subject: false, options: ['limit'] },
} satisfies Record<string, CommandSyntax>

export type CommandName = keyof typeof COMMAND_SYNTAX

export interface CommandLine {
  command: CommandName
  subject: string | undefined
  values: Values
}

/**
 * The parsed command line; undefined if help is requested. Unknown arguments and options are
 * refused, because ignoring them would look like success.
 *
 * @throws UsageError
 */
export function readCommandLine(args: string[]): CommandLine | undefined {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: true })
  const [given, ...others] = positionals
  if (values.help || given === undefined || given === 'help') return undefined
  const command = ALIASES.get(given) ?? given
  if (!isCommand(command)) {
    const meant = nearestName(command, Object.keys(COMMAND_SYNTAX))
    const words = meant === undefined ? '--help lists them.' : `did you mean ${meant}? --help lists all commands.`
    throw new UsageError(`There is no command ${command}; ${words}`)
  }
  const { subject, options }: CommandSyntax = COMMAND_SYNTAX[command]
  const surplus = others.slice(subject ? 1 : 0)
  if (surplus.length > 0) {
    const accepted = subject ? 'one argument' : 'no argument'
    throw new UsageError(
      `Nothing was done: ${command} accepts ${accepted}, not "${surplus.join(' ')}"; --help shows the usage.`,
    )
  }
  for (const name of Object.keys(values) as (keyof Values)[]) {
    if (COMMON.includes(name) || options.includes(name)) continue
    throw new UsageError(`Nothing was done: ${command} has no option --${name}; --help shows the usage.`)
  }
  const [one, other] = CONTRADICTIONS.find((pair) => pair.every((name) => values[name] !== undefined)) ?? []
  if (one !== undefined)
    throw new UsageError(`Nothing was done: --${one} and --${other} cannot be used together; --help shows the usage.`)
  return { command, subject: others[0], values }
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMAND_SYNTAX, name)
}
