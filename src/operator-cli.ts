import { readFile } from 'node:fs/promises'
import { stdin } from 'node:process'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { ConfigError, loadOperatorClient, type OperatorClient, parseCaps } from './config.ts'

const HELP = `The operator's command line: a client of the operator API.

  npm run operator -- <command> [arguments]

Accounts
  users [part of an address]              find accounts, newest first
  user <id or address> [--tier T] [--disable | --enable] [--approve | --disapprove]
                                          T: developer, pro, business, enterprise

Upstreams
  upstreams                               list them with the settings in force
  upstream <slug> [--tier T] [--enable | --disable] [--caps C] [--key-file F]
                                          C: concurrency=4,60/3600,10/60 (calls/seconds)
                                          F: file that holds the key; - reads it from standard input
  reset <slug>                            back to what its file and the environment say
  pause <slug> | resume <slug>            hold its queue, let it go
  probe <slug>                            probe it now

Fleet
  overview                                queues, caps left, health, processes
  audit [--limit N]                       the latest changes

Options
  --json                                  print the answer as JSON
  --url http://host:port                  operator address (else HOST and OPS_PORT)

The token is OPERATOR_TOKEN, or the one that npm start keeps in the data folder.
`

const TIERS = ['developer', 'pro', 'business', 'enterprise']

/** What the person at the terminal did wrong; told without a stack. */
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
  caps: { type: 'string' },
  'key-file': { type: 'string' },
  limit: { type: 'string' },
} as const

try {
  await main(process.argv.slice(2))
} catch (error) {
  const isTold = error instanceof UsageError || error instanceof ConfigError || isParseError(error)
  console.error(isTold && error instanceof Error ? error.message : error)
  process.exitCode = 1
}

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: true })
  const [command, subject] = positionals
  if (values.help || command === undefined || command === 'help') {
    console.log(HELP)
    return
  }
  const client = await loadOperatorClient(values.url)
  const answer = await run(client, command, subject, values)
  if (values.json) console.log(JSON.stringify(answer, null, 2))
  else print(answer)
}

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

async function run(client: OperatorClient, command: string, subject: string | undefined, values: Values) {
  const slugPath = () => `/v1/operator/upstreams/${encodeURIComponent(required(subject, 'a slug'))}`
  switch (command) {
    case 'users':
      return await ask(client, 'GET', `/v1/operator/users?email=${encodeURIComponent(subject ?? '')}`)
    case 'user':
      return await changeUser(client, required(subject, 'an id or address'), values)
    case 'upstreams':
      return await ask(client, 'GET', '/v1/operator/upstreams')
    case 'upstream':
      return await ask(client, 'PATCH', slugPath(), await upstreamChange(values))
    case 'reset':
      return await ask(client, 'PATCH', slugPath(), { enabled: null, tierRequired: null, caps: null, key: null })
    case 'pause':
    case 'resume':
    case 'probe':
      return await ask(client, 'POST', `${slugPath()}/${command}`)
    case 'overview':
      return await ask(client, 'GET', '/v1/operator/overview')
    case 'audit':
      return await ask(client, 'GET', `/v1/operator/audit?limit=${encodeURIComponent(values.limit ?? '50')}`)
    default:
      throw new UsageError(`There is no command ${command}; --help lists them.`)
  }
}

async function changeUser(client: OperatorClient, subject: string, values: Values): Promise<unknown> {
  const id = subject.includes('@') ? await findUserId(client, subject) : subject
  const change = {
    ...tierOf(values, 'tier'),
    ...(onOff(values) === undefined ? {} : { disabled: onOff(values) === false }),
    ...(values.approve || values.disapprove ? { approved: values.approve === true } : {}),
  }
  if (Object.keys(change).length === 0)
    throw new UsageError('Say what to change: --tier, --disable, --enable, --approve or --disapprove.')
  return await ask(client, 'PATCH', `/v1/operator/users/${encodeURIComponent(id)}`, change)
}

async function findUserId(client: OperatorClient, email: string): Promise<string> {
  const answer = await ask(client, 'GET', `/v1/operator/users?email=${encodeURIComponent(email)}`)
  const users: { id: string; email: string }[] = Object(answer).users ?? []
  const user = users.find((candidate) => candidate.email.toLowerCase() === email.toLowerCase())
  if (!user) throw new UsageError(`No account has the address ${email}.`)
  return user.id
}

async function upstreamChange(values: Values): Promise<object> {
  const file = values['key-file']
  const key = file === undefined ? undefined : (await (file === '-' ? text(stdin) : readFile(file, 'utf8'))).trim()
  const change = {
    ...tierOf(values, 'tierRequired'),
    ...(onOff(values) === undefined ? {} : { enabled: onOff(values) }),
    ...(values.caps === undefined ? {} : { caps: parseCaps('--caps', values.caps) }),
    ...(key === undefined ? {} : { key }),
  }
  if (Object.keys(change).length === 0) {
    throw new UsageError('Say what to change: --tier, --enable, --disable, --caps or --key-file.')
  }
  return change
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

async function ask(
  { url, token, name }: OperatorClient,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
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

/** A list as a table, one thing as its members. */
function print(answer: unknown): void {
  for (const [name, value] of Object.entries(Object(answer))) {
    if (Array.isArray(value)) console.table(value.map(flat))
    else if (typeof value === 'object' && value !== null) console.table([flat(value)])
    else console.log(`${name}: ${value}`)
  }
}

function flat(row: unknown): object {
  return Object.fromEntries(
    Object.entries(Object(row)).map(([name, value]) => [
      name,
      name === 'caps' ? inWords(value) : typeof value === 'object' && value !== null ? JSON.stringify(value) : value,
    ]),
  )
}

/** Caps as `--caps` takes them, with what is left of each where that is known. */
function inWords(caps: unknown): string {
  const { concurrency, rates } = Object(caps)
  const told = (rates ?? []).map(({ max, seconds, left }: { max: number; seconds: number; left?: number }) =>
    left === undefined ? `${max}/${seconds}` : `${max}/${seconds} (${left} left)`,
  )
  return [`concurrency=${concurrency}`, ...told].join(',')
}

function isParseError(error: unknown): boolean {
  return error instanceof TypeError && String(Reflect.get(error, 'code')).startsWith('ERR_PARSE_ARGS')
}
