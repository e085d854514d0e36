import { parseArgs } from 'node:util'
import { nearestName } from '../catalog/nearest-name.ts'

export const HELP = `The operator's command line: a client of the operator API.

  npm run operator -- <command> [arguments]
                                          npm prints two lines of its own first; for a file or a program without them:
                                          npm run --silent operator -- export > gateway.yaml
                                          in a container: node src/operator-cli.ts <command> [arguments]

Accounts
  accounts [part of an email] [--unapproved]
                                          find accounts, newest first, or accounts neither approved nor disabled
                                          state: unverified (email), verified, approved or disabled
  account <id or email>                   what it is and does: calls by API, last failures, keys, connections
  account <id or email> [--tier T] [--disable | --enable] [--approve | --disapprove]
                                          change it; T: developer, pro, business, enterprise
                                          approved: its live calls need no verified email
  account <id or email> --reset-link      print a link that sets a new password, once, within 30 minutes
  new-password <id or email>              give it a new password, shown once, and end its sessions
  revoke-key <id>                         revoke a key of any account, on every node at once

Calls
  call <id>                               the outcome of a call, and where its time went, by X-Call-Id or
                                          X-Request-Id; exit code 1 if the log has none

Upstreams
  upstreams                               list them with the settings in force
  upstream <slug> [--tier T] [--enable | --disable] [--caps C] [--key-file F]
                                          without an option: show it
                                          C: concurrency=4,60/3600,10/60 (requests/seconds)
                                          F: file that holds the key; - reads it from standard input
  reset <slug>                            back to what its file and the environment say; deletes the key stored for it
  pause <slug> [--hold]                   refuse its calls (503 API_PAUSED), or let them wait with --hold
  resume <slug>                           serve its calls again
  probe <slug>                            probe it now, and print the result
  apply <file> [--check]                  settings of many upstreams from a YAML file, whole or not at all
                                          upstreams: { news: { enabled, tierRequired, caps, paused, key: { env | file } } }
                                          --check changes nothing: 0 no difference, 2 a difference, 1 a wrong file
                                          - reads the file from standard input
  export                                  the same file of what the operators have set; it names APIs with keys, and no key

Own APIs
  check <file> [--overlay F]              what the gateway makes of an OpenAPI document: errors, what is left out, the
                                          catalog entry; needs no running gateway; exit code 1 if it has errors
                                          F: else <name>.overlay.yaml or .json beside the file
  check <folder>                          the same of all documents of a folder, and where they clash

Users
  notice [text] [--until T] [--end]       show a text on the pages of the portal until T, end it, or print it
                                          T: a time such as 2026-12-01T06:00:00Z, at most 90 days ahead

Fleet
  status                                  what needs you, and nothing else; exit code 1 while callers fail
  overview                                health, queues, caps left and failures of each API
  queue <slug>                            its calls in the order in which they run, and probes
  top                                     the accounts with the most live calls in the last hour
  audit [--limit N]                       the latest changes

Options
  --json                                  print the answer as JSON
  --url http://host:port                  operator address (else OPS_HOST and OPS_PORT, or where
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

interface Taken {
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

const TAKEN = {
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
} satisfies Record<string, Taken>

export type CommandName = keyof typeof TAKEN

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
    const meant = nearestName(command, Object.keys(TAKEN))
    const words = meant === undefined ? '--help lists them.' : `did you mean ${meant}? --help lists all commands.`
    throw new UsageError(`There is no command ${command}; ${words}`)
  }
  const { subject, options }: Taken = TAKEN[command]
  const surplus = others.slice(subject ? 1 : 0)
  if (surplus.length > 0) {
    const taken = subject ? 'one argument' : 'no argument'
    throw new UsageError(`Nothing was done: ${command} takes ${taken}, not "${surplus.join(' ')}"; --help shows how.`)
  }
  for (const name of Object.keys(values) as (keyof Values)[]) {
    if (COMMON.includes(name) || options.includes(name)) continue
    throw new UsageError(`Nothing was done: ${command} takes no option --${name}; --help shows how.`)
  }
  return { command, subject: others[0], values }
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(TAKEN, name)
}
