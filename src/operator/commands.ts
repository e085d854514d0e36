import { readFile } from 'node:fs/promises'
import { stdin } from 'node:process'
import { text } from 'node:stream/consumers'
import type { Static } from 'typebox'
import { momentOf } from '../catalog/calendar.ts'
import { ConfigError, type Environment, loadOperatorClient, type OperatorClient, parseCaps } from '../config.ts'
import type { QueueAnswer } from '../fleet/queue-schema.ts'
import { TIERS } from '../limits/plans.ts'
import { accountText, callsText } from './account-as-text.ts'
import type { AccountReport } from './account-report.ts'
import {
  auditText,
  isFailing,
  overviewText,
  queueText,
  settingsText,
  statusText,
  topText,
  upstreamsText,
  usersText,
  userText,
} from './answers-as-text.ts'
import type { SettingsAnswer, StoredSettings } from './apply-settings.ts'
import { type CommandName, HELP, readCommandLine, UsageError, type Values } from './command-line.ts'
import { findUser, type ListedUser, listUpstreams, listUsers, readOverview, request } from './request-operator-api.ts'

type SettingsResult = Static<typeof SettingsAnswer>

/**
 * Runs a command line of the operator.
 *
 * @param environment variables with the address and token of the operator API. Default: the
 *   environment of the process
 * @throws UsageError, ConfigError or a parse error if the person at the terminal made a mistake
 */
export async function operate(args: string[], environment?: Environment): Promise<Done> {
  const commandLine = readCommandLine(args)
  if (commandLine === undefined) return { text: HELP, code: 0 }
  const { command, subject, values } = commandLine
  const { answer, text, code = 0 } = await run(command, { subject, values, environment })
  return { text: values.json ? JSON.stringify(answer, null, 2) : text, code }
}

/** The output of the command line, and its exit code. */
export interface Done {
  text: string
  code: number
}

/**
 * Whether an error is a mistake of the person at the terminal, who needs its message but no stack
 * trace.
 */
export function isOfUser(error: unknown): error is Error {
  return error instanceof UsageError || error instanceof ConfigError || isParseError(error)
}

async function run(
  command: CommandName,
  { subject, values, environment }: Omit<Invocation, 'client'> & { environment: Environment | undefined },
): Promise<Result> {
  if (command === 'check') return await check(required(subject, 'a file or folder'), values)
  return await COMMANDS[command]({ client: await loadOperatorClient(values.url, environment), subject, values })
}

/** The only command that works without a running gateway. */
async function check(path: string, { overlay }: Values): Promise<Result> {
  // Imported here, because the reader of documents is a large package and no other command needs
  // it.
  const { checkPath } = await import('./check-document.ts')
  const checked = await checkPath(path, overlay)
  return { ...checked, code: checked.answer.ok ? 0 : 1 }
}

interface Invocation {
  client: OperatorClient
  subject: string | undefined
  values: Values
}

/** The result of a command: the answer for programs, and the text. */
interface Result {
  answer: unknown
  text: string
  /** Exit code. Default: 0. */
  code?: number
}

type Command = (invocation: Invocation) => Promise<Result>

const COMMANDS: Record<Exclude<CommandName, 'check'>, Command> = {
  status: async ({ client }) => {
    const answer = await readOverview(client)
    return { answer, text: statusText(answer), code: isFailing(answer) ? 1 : 0 }
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
  accounts: async ({ client, subject, values }) => {
    const answer = await listUsers(client, subject ?? '', values.unapproved)
    return { answer, text: usersText(answer) }
  },
  account: async ({ client, subject, values }) => {
    const account = required(subject, 'an id or email')
    if (values['reset-link']) return await makeResetLink(client, account, values)
    const change = userChange(values)
    if (Object.keys(change).length === 0) {
      const { id } = await findUser(client, account)
      const answer = (await request(client, `GET /v1/operator/users/${encodeURIComponent(id)}`)) as AccountReport
      return { answer, text: accountText(answer) }
    }
    const user = await changeUser(client, account, change)
    return { answer: { user }, text: userText(user) }
  },
  'new-password': async ({ client, subject }) => await resetPassword(client, required(subject, 'an id or email')),
  'revoke-key': async ({ client, subject }) => {
    const id = required(subject, 'the id of a key')
    const answer = await request(client, `DELETE /v1/operator/keys/${encodeURIComponent(id)}`)
    return { answer, text: `The key ${id} is revoked: every node refuses it from now on.` }
  },
  call: async ({ client, subject }) => {
    const id = required(subject, 'the id of a call or of a request')
    const answer = await request(client, `GET /v1/operator/calls/${encodeURIComponent(id)}`)
    return { answer, text: callsText(Object(answer).calls) }
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
    if (!upstream) throw new UsageError(`The catalog has no API ${slug}; the command upstreams lists all APIs.`)
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
    const text = outcome
      ? `${subject}: ${outcome.words}${outcome.code === null ? '' : ` (${outcome.code})`}`
      : `${subject}: no result yet. Check that a worker is running and that the cap has room.`
    return { answer, text, code: outcome?.code === null ? 0 : 1 }
  },
  apply: async ({ client, subject, values }) => {
    // Imported here, because the YAML parser is a large package and few commands need it.
    const { readSettingsFile } = await import('./settings-file.ts')
    const settings = await readSettingsFile(required(subject, 'a file'), client.variable)
    const answer = await request(client, `POST /v1/operator/settings?dryRun=${values.check === true}`, settings)
    const { differences } = answer as SettingsResult
    const code = values.check && differences.length > 0 ? 2 : 0
    return { answer, text: settingsText(answer as SettingsResult), code }
  },
  export: async ({ client }) => {
    const { settingsFileText } = await import('./settings-file.ts')
    const stored = (await request(client, 'GET /v1/operator/settings')) as StoredSettings
    return { answer: { upstreams: stored.upstreams }, text: settingsFileText(stored) }
  },
  notice: async ({ client, subject, values }) => {
    const answer = await changeNotice(client, subject, values)
    const { notice } = Object(answer)
    return { answer, text: notice ? `Shown until ${notice.until}: ${notice.text}` : 'The pages show no notice.' }
  },
  audit: async ({ client, values }) => {
    const answer = await request(client, `GET /v1/operator/audit?limit=${encodeURIComponent(values.limit ?? '50')}`)
    return { answer, text: auditText(Object(answer).records) }
  },
}

async function changeNotice(client: OperatorClient, text: string | undefined, values: Values): Promise<unknown> {
  const path = '/v1/operator/notice'
  if (values.end && text !== undefined) throw new UsageError('Nothing was done: --end cannot be used with a text.')
  if (values.until !== undefined && text === undefined) throw new UsageError('Nothing was done: --until needs a text.')
  if (values.end) return await request(client, `DELETE ${path}`)
  if (text === undefined) return await request(client, `GET ${path}`)
  const time = momentOf(required(values.until, '--until'))
  if (!time) throw new UsageError('--until must be a time such as 2026-12-01T06:00:00Z.')
  return await request(client, `PUT ${path}`, { text, until: time.toISOString() })
}

function upstreamPath(subject: string | undefined): string {
  return `/v1/operator/upstreams/${encodeURIComponent(required(subject, 'a slug'))}`
}

async function patchUpstream(client: OperatorClient, subject: string | undefined, change: object): Promise<Result> {
  const answer = await request(client, `PATCH ${upstreamPath(subject)}`, change)
  return { answer, text: upstreamsText([Object(answer).upstream]) }
}

async function changeUser(client: OperatorClient, subject: string, change: object): Promise<ListedUser> {
  const id = subject.includes('@') ? (await findUser(client, subject)).id : subject
  return Object(await request(client, `PATCH /v1/operator/users/${encodeURIComponent(id)}`, change)).user
}

function userChange(values: Values): object {
  return {
    ...tierOf(values, 'tier'),
    ...(isEnabledBy(values) === undefined ? {} : { disabled: isEnabledBy(values) === false }),
    ...(values.approve || values.disapprove ? { approved: values.approve === true } : {}),
  }
}

async function resetPassword(client: OperatorClient, subject: string): Promise<Result> {
  const { id, email } = await findUser(client, subject)
  const answer = await request(client, `POST /v1/operator/users/${encodeURIComponent(id)}/password`)
  const { user, password } = Object(answer)
  const text = `New password of ${email}, shown this once: ${password}`
  const note = `The account is disabled. It logs in once it is enabled: account ${email} --enable`
  return { answer, text: user.disabled ? `${text}\n${note}` : text }
}

async function makeResetLink(client: OperatorClient, subject: string, values: Values): Promise<Result> {
  if (Object.keys(userChange(values)).length > 0)
    throw new UsageError('Nothing was done: --reset-link cannot be used together with other options of account.')
  const { id, email } = await findUser(client, subject)
  const answer = await request(client, `POST /v1/operator/users/${encodeURIComponent(id)}/reset-link`)
  const text = `${email} sets a new password here, once, within 30 minutes:\n${Object(answer).link}`
  return { answer, text }
}

async function upstreamChange(values: Values): Promise<object> {
  const file = values['key-file']
  const key = file === undefined ? undefined : await readKey(file)
  return {
    ...tierOf(values, 'tierRequired'),
    ...(isEnabledBy(values) === undefined ? {} : { enabled: isEnabledBy(values) }),
    ...(values.caps === undefined ? {} : { caps: parseCaps('--caps', values.caps) }),
    ...(key === undefined ? {} : { key }),
  }
}

async function readKey(file: string): Promise<string> {
  const key = await (file === '-' ? text(stdin) : readFile(file, 'utf8')).catch((cause) => {
    throw new UsageError(`--key-file: ${file} cannot be read.`, { cause })
  })
  if (key.trim() === '') throw new UsageError(`--key-file: ${file === '-' ? 'standard input' : file} is empty.`)
  return key.trim()
}

function tierOf({ tier }: Values, member: string): object {
  if (tier === undefined) return {}
  if (!TIERS.some((each) => each === tier)) throw new UsageError(`--tier must be one of ${TIERS.join(', ')}.`)
  return { [member]: tier }
}

function isEnabledBy({ enable, disable }: Values): boolean | undefined {
  return enable ? true : disable ? false : undefined
}

function required(value: string | undefined, what: string): string {
  if (!value) throw new UsageError(`This command needs ${what}; --help shows the usage.`)
  return value
}

function isParseError(error: unknown): error is Error {
  return error instanceof TypeError && String(Reflect.get(error, 'code')).startsWith('ERR_PARSE_ARGS')
}
