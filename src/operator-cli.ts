import { readFile } from 'node:fs/promises'
import { stdin } from 'node:process'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import type { Static } from 'typebox'
import { ConfigError, loadOperatorClient, type OperatorClient, parseCaps } from './config.ts'
import type { OverviewAnswer } from './fleet/overview-answer.ts'
import type { QueueAnswer } from './fleet/queue-answer.ts'
import {
  auditText,
  isFailing,
  overviewText,
  queueText,
  statusText,
  topText,
  upstreamsText,
  usersText,
  userText,
} from './operator/answers-as-text.ts'
import type { UsersAnswer } from './operator/change-user.ts'
import type { UpstreamAnswer } from './operator/describe-upstream.ts'

const HELP = `The operator's command line: a client of the operator API.

  npm run operator -- <command> [arguments]

Accounts
  users [part of an address] [--unapproved]
                                          find accounts, newest first, or those neither approved nor disabled
                                          state: unproven (address), proven, approved or disabled
  user <id or address> [--tier T] [--disable | --enable] [--approve | --disapprove]
                                          without an option: show it; T: developer, pro, business, enterprise
                                          approved: its live calls need no proof of its address

Upstreams
  upstreams                               list them with the settings in force
  upstream <slug> [--tier T] [--enable | --disable] [--caps C] [--key-file F]
                                          without an option: show it
                                          C: concurrency=4,60/3600,10/60 (calls/seconds)
                                          F: file that holds the key; - reads it from standard input
  reset <slug>                            back to what its file and the environment say
  pause <slug> [--hold]                   refuse its calls (503 API_PAUSED), or with --hold let them wait
  resume <slug>                           let them go on
  probe <slug>                            probe it now, and say what came of it

Fleet
  status                                  what needs you, and nothing else; exit code 1 while callers fail
  overview                                health, queues, caps left and failures of each API
  queue <slug>                            its calls in the order in which they are served, and probes
  top                                     the accounts with most calls in the last hour
  audit [--limit N]                       the latest changes

Options
  --json                                  print the answer as JSON
  --url http://host:port                  operator address (else OPS_HOST and OPS_PORT, or where
                                          npm start with the same data folder listens)

The token is OPERATOR_TOKEN, or the one that npm start keeps in the data folder.
`

type Users = Static<typeof UsersAnswer>
type User = Users['users'][number]

const TIERS = ['developer', 'pro', 'business', 'enterprise']

/** What the person at the terminal did wrong; printed without a stack. */
class UsageError extends Error {}

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  url: { type: 'string' },
  tier: { type: 'string' },
  enable: { type: 'boolean' },
  disable: { type: 'boolean' },
  approve: { type: 'boolean' },
  disapprove: { type: 'boolean' },
  unapproved: { type: 'boolean' },
  caps: { type: 'string' },
  'key-file': { type: 'string' },
  limit: { type: 'string' },
  hold: { type: 'boolean' },
} as const

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: true })
  const [command, subject] = positionals
  if (values.help || command === undefined || command === 'help') {
    console.log(HELP)
    return
  }
  const run = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
  if (!run) throw new UsageError(`There is no command ${command}; --help lists them.`)
  const client = await loadOperatorClient(values.url)
  const { answer, text } = await run({ client, subject, values })
  console.log(values.json ? JSON.stringify(answer, null, 2) : text)
}

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

interface Invocation {
  client: OperatorClient
  subject: string | undefined
  values: Values
}

/** What came of a command: the answer for programs, and as text. */
interface Result {
  answer: unknown
  text: string
}

type Command = (invocation: Invocation) => Promise<Result>

const COMMANDS: Record<string, Command> = {
  status: async ({ client }) => {
    const answer = await readOverview(client)
    if (isFailing(answer)) process.exitCode = 1
    return { answer, text: statusText(answer) }
  },
  overview: async ({ client }) => {
    const answer = await readOverview(client)
    return { answer, text: overviewText(answer) }
  },
  top: async ({ client }) => {
    const answer = await readOverview(client)
    return { answer: { accounts: answer.accounts }, text: topText(answer) }
  },
  queue: async ({ client, subject }) => {
    const answer = (await request(client, `GET ${upstreamPath(subject)}/queue`)) as Static<typeof QueueAnswer>
    return { answer, text: queueText(answer) }
  },
  users: async ({ client, subject, values }) => {
    const answer = await listUsers(client, subject ?? '', values.unapproved)
    return { answer, text: usersText(answer) }
  },
  user: async ({ client, subject, values }) => {
    const user = await changeUser(client, required(subject, 'an id or address'), values)
    return { answer: { user }, text: userText(user) }
  },
  upstreams: async ({ client }) => {
    const upstreams = await listUpstreams(client)
    return { answer: { upstreams }, text: upstreamsText(upstreams) }
  },
  upstream: async ({ client, subject, values }) => {
    const change = await upstreamChange(values)
    if (Object.keys(change).length > 0) return await patchUpstream(client, subject, change)
    const slug = required(subject, 'a slug')
    const upstream = (await listUpstreams(client)).find((candidate) => candidate.slug === slug)
    if (!upstream) throw new UsageError(`There is no API ${slug}; the command upstreams lists them.`)
    return { answer: { upstream }, text: upstreamsText([upstream]) }
  },
  reset: async ({ client, subject }) =>
    await patchUpstream(client, subject, { enabled: null, tierRequired: null, caps: null, key: null }),
  pause: async ({ client, subject, values }) => {
    const mode = values.hold ? 'hold' : 'refuse'
    const answer = await request(client, `POST ${upstreamPath(subject)}/pause`, { mode })
    const callers = mode === 'hold' ? 'its calls wait' : 'its calls are refused with 503 API_PAUSED'
    return { answer, text: `${subject} is paused: ${callers}.` }
  },
  resume: async ({ client, subject }) => {
    const answer = await request(client, `POST ${upstreamPath(subject)}/resume`)
    return { answer, text: `${subject} is resumed.` }
  },
  probe: async ({ client, subject }) => {
    const answer = await request(client, `POST ${upstreamPath(subject)}/probe`)
    const { outcome } = Object(answer)
    if (outcome?.code !== null) process.exitCode = 1
    const text = outcome
      ? `${subject}: ${outcome.words}${outcome.code === null ? '' : ` (${outcome.code})`}`
      : `${subject}: no outcome yet; is a worker alive, and has the cap a slot?`
    return { answer, text }
  },
  audit: async ({ client, values }) => {
    const answer = await request(client, `GET /v1/operator/audit?limit=${encodeURIComponent(values.limit ?? '50')}`)
    return { answer, text: auditText(Object(answer).records) }
  },
}

async function readOverview(client: OperatorClient): Promise<Static<typeof OverviewAnswer>> {
  return (await request(client, 'GET /v1/operator/overview')) as Static<typeof OverviewAnswer>
}

async function listUpstreams(client: OperatorClient): Promise<Static<typeof UpstreamAnswer>[]> {
  return Object(await request(client, 'GET /v1/operator/upstreams')).upstreams
}

function upstreamPath(subject: string | undefined): string {
  return `/v1/operator/upstreams/${encodeURIComponent(required(subject, 'a slug'))}`
}

async function patchUpstream(client: OperatorClient, subject: string | undefined, change: object): Promise<Result> {
  const answer = await request(client, `PATCH ${upstreamPath(subject)}`, change)
  return { answer, text: upstreamsText([Object(answer).upstream]) }
}

async function changeUser(client: OperatorClient, subject: string, values: Values): Promise<User> {
  const change = {
    ...tierOf(values, 'tier'),
    ...(onOff(values) === undefined ? {} : { disabled: onOff(values) === false }),
    ...(values.approve || values.disapprove ? { approved: values.approve === true } : {}),
  }
  const isChange = Object.keys(change).length > 0
  if (isChange && !subject.includes('@')) return await patchUser(client, subject, change)
  const user = await findUser(client, subject)
  return isChange ? await patchUser(client, user.id, change) : user
}

async function patchUser(client: OperatorClient, id: string, change: object): Promise<User> {
  return Object(await request(client, `PATCH /v1/operator/users/${encodeURIComponent(id)}`, change)).user
}

async function listUsers(client: OperatorClient, text: string, unapproved = false): Promise<Users> {
  const query = new URLSearchParams({ email: text, ...(unapproved ? { unapproved: 'true' } : {}) })
  return (await request(client, `GET /v1/operator/users?${query}`)) as Users
}

async function findUser(client: OperatorClient, subject: string): Promise<User> {
  const { users } = await listUsers(client, subject)
  const wanted = subject.toLowerCase()
  const user = users.find(({ id, email: address }) => id === wanted || address.toLowerCase() === wanted)
  if (!user) throw new UsageError(`No account has the ${subject.includes('@') ? 'address' : 'id'} ${subject}.`)
  return user
}

async function upstreamChange(values: Values): Promise<object> {
  const file = values['key-file']
  const key = file === undefined ? undefined : await readKey(file)
  return {
    ...tierOf(values, 'tierRequired'),
    ...(onOff(values) === undefined ? {} : { enabled: onOff(values) }),
    ...(values.caps === undefined ? {} : { caps: parseCaps('--caps', values.caps) }),
    ...(key === undefined ? {} : { key }),
  }
}

async function readKey(file: string): Promise<string> {
  try {
    return (await (file === '-' ? text(stdin) : readFile(file, 'utf8'))).trim()
  } catch (cause) {
    throw new UsageError(`--key-file: ${file} cannot be read.`, { cause })
  }
}

function tierOf({ tier }: Values, member: string): object {
  if (tier === undefined) return {}
  if (!TIERS.includes(tier)) throw new UsageError(`--tier must be one of ${TIERS.join(', ')}.`)
  return { [member]: tier }
}

function onOff({ enable, disable }: Values): boolean | undefined {
  if (enable && disable) throw new UsageError('--enable and --disable exclude each other.')
  return enable ? true : disable ? false : undefined
}

function required(value: string | undefined, what: string): string {
  if (value === undefined) throw new UsageError(`This command needs ${what}; --help shows how.`)
  return value
}

async function request(
  { url, token, name }: OperatorClient,
  route: `${'GET' | 'POST' | 'PATCH'} ${string}`,
  body?: object,
): Promise<unknown> {
  const [method = '', path = ''] = route.split(' ', 2)
  const headers = { authorization: `Bearer ${token}`, 'x-operator': name }
  const response = await fetch(url + path, {
    method,
    headers: body ? { ...headers, 'content-type': 'application/json' } : headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).catch((cause) => {
    throw new UsageError(`The operator API at ${url} does not answer. Is the service running?`, { cause })
  })
  const answer = Object(await response.json().catch(() => ({})))
  if (!response.ok) throw new UsageError(`${response.status} ${answer.code ?? ''}: ${answer.message ?? 'refused'}`)
  return answer
}

function isParseError(error: unknown): boolean {
  return error instanceof TypeError && String(Reflect.get(error, 'code')).startsWith('ERR_PARSE_ARGS')
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const isUserError = error instanceof UsageError || error instanceof ConfigError || isParseError(error)
  console.error(isUserError && error instanceof Error ? error.message : error)
  process.exitCode = 1
}
