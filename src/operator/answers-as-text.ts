import { styleText } from 'node:util'
import type { Static } from 'typebox'
import type { OverviewAnswer } from '../fleet/overview-schema.ts'
import type { QueueAnswer } from '../fleet/queue-schema.ts'
import { causeWords, countOf, percent, span, stateOf } from '../fleet/words.js'
import type { SettingsAnswer } from './apply-settings.ts'
import type { auditAnswer } from './audit-query.ts'
import type { UserAnswer } from './change-user.ts'
import type { UpstreamAnswer } from './describe-upstream.ts'
import { textTable, wrapped } from './text-table.ts'

type Overview = Static<typeof OverviewAnswer>
type UpstreamRow = Overview['upstreams'][number]
type User = Static<typeof UserAnswer>
type Upstream = Static<typeof UpstreamAnswer>

const UNKNOWN = '?'

/** Whether callers fail now. If so, the command `status` has the exit code 1. */
export function isFailing({ problems }: Overview): boolean {
  return problems.some(({ rank }) => rank === 0)
}

/**
 * The text of `status`: the headline (unless it repeats a problem), then each problem with what
 * callers get and what to do, and finally the counts.
 */
export function statusText({ headline, problems, upstreams, processes, callsLastMinute }: Overview): string {
  const states = upstreams.filter((row) => row.enabled).map(({ caps, ...row }) => stateOf({ ...row, cap: caps }))
  const of = (wanted: string) => states.filter((state) => state === wanted).length
  const named = ['Healthy', 'Limited', 'Degraded', 'Down', 'Paused']
  const counts = named
    .filter((state) => of(state) > 0 || state === 'Healthy')
    .map((state) => `${of(state)} ${state.toLowerCase()}`)
  if (of('Unchecked') > 0) counts.push(`${of('Unchecked')} not checked yet`)
  const apis = states.includes('Unknown') ? 'state unknown' : counts.join(', ')
  const kinds = processes === null ? 'unknown' : countKinds(processes)
  const foot = `${states.length} ${states.length === 1 ? 'API' : 'APIs'} enabled: ${apis}. Calls in the last minute: ${callsLastMinute ?? 'unknown'}. Processes: ${kinds}.`
  const lines = problems.map(({ rank, label, text, callers, todo, endedAt }) => {
    const mark = endedAt === null ? `[${label}]` : `[${label}, over]`
    const color = endedAt === null ? (rank === 0 ? 'red' : 'yellow') : 'gray'
    const colored = styleText(color, mark, { stream: process.stdout })
    return `${wrapped(`${mark} ${text}`).replace(mark, colored)}\n${wrapped(`${callers} ${todo}`, '    ')}`
  })
  const needsNobody = problems.every(({ endedAt }) => endedAt !== null) && headline.state === 'Healthy'
  const isProblem = problems.some(({ text }) => `${text}.` === headline.text)
  const head = isProblem ? [] : [wrapped(needsNobody ? `${headline.text} Nothing needs attention.` : headline.text)]
  return [...head, ...lines, wrapped(foot)].join('\n')
}

function countKinds(processes: { kind: string }[]): string {
  const kinds = [...new Set(processes.map(({ kind }) => kind))]
  return kinds.map((kind) => `${processes.filter((one) => one.kind === kind).length} ${kind}`).join(', ') || 'none'
}

/** A line for each API. */
export function overviewText(overview: Overview): string {
  const heads = ['API', 'Health', 'Waiting', 'Active', 'Cap left', '5 min', 'Failing', 'Why']
  return `${textTable(heads, overview.upstreams.map(overviewRow), { whole: ['API'] })}\n\n${statusText(overview)}`
}

function overviewRow({ slug, enabled, switchedOff, paused, health, queue, caps, recent }: UpstreamRow): string[] {
  const state = stateOf({ enabled, paused, health, cap: caps })
  const all = recent === null ? 0 : recent.answered + recent.refused + recent.failed
  return [
    slug,
    state === 'Paused' ? `paused (${paused})` : state === 'Unknown' ? UNKNOWN : state,
    queue === null ? UNKNOWN : String(queue.waiting),
    queue === null ? UNKNOWN : String(queue.active),
    caps === null
      ? UNKNOWN
      : caps.rates.map(({ left, max, seconds }) => `${left}/${max} per ${window(seconds)}`).join(', '),
    recent === null ? UNKNOWN : String(all),
    recent === null || all === 0 ? '' : percent(recent.failed / all),
    whyNotHealthy({ enabled, switchedOff, health }),
  ]
}

function whyNotHealthy({ enabled, switchedOff, health }: Pick<UpstreamRow, 'enabled' | 'switchedOff' | 'health'>) {
  if (!enabled) return switchedOff ? 'switched off' : 'needs a key'
  if (health === null || health.status === 'Healthy') return ''
  return health.lastFailure?.words ?? causeWords({ cause: health.cause, to: health.status })
}

function window(seconds: number): string {
  return span(seconds * 1_000).replace(' ', '')
}

const STATE_WORDS = {
  'under-way': 'under way',
  held: 'until resume',
  'waiting-for-worker': 'waiting for worker',
} as const

/**
 * A line for each call: running calls first, then the others in the order in which they will be
 * served.
 */
export function queueText({ slug, workers, calls, more, otherJobs, failedJobs }: Static<typeof QueueAnswer>): string {
  if (calls === null || otherJobs === null || failedJobs === null) return 'Unknown: Redis does not answer.'
  const rows = calls.map((call) => [
    call.state === 'waiting-for-cap' ? `cap, ${call.ahead} before it` : STATE_WORDS[call.state],
    call.id,
    call.email ?? call.accountId,
    `${call.endpoint} ${Object.entries(call.parameters)
      .map(([name, value]) => `${name}=${value}`)
      .join(' ')}`,
    span(call.ageMs),
    call.deadlineInMs > 0 ? span(call.deadlineInMs) : 'over',
  ])
  const heads = ['State', 'Call', 'Account', 'Request', 'Age', 'Deadline in']
  const table = rows.length > 0 ? textTable(heads, rows, { whole: ['Account'] }) : ''
  const jobs = otherJobs.map(({ title, running, dueInMs }) => `${title} ${running ? 'runs' : `in ${span(dueInMs)}`}`)
  const failed = failedJobs.map(({ name, id, at, reason }) => [name, id, reason, at.slice(0, 19).replace('T', ' ')])
  const failedTable =
    failed.length > 0 ? [textTable(['Ended by a defect', 'Id', 'Why', 'When'], failed, { whole: ['Id', 'When'] })] : []
  const serving =
    workers === null ? 'workers unknown' : `${countOf(workers, 'worker')} ${workers === 1 ? 'serves' : 'serve'} it`
  const count = `${slug}: ${more ? 'more than ' : ''}${countOf(calls.length, 'call')} here, ${serving}. ${jobs.join(', ')}`
  return [...(table ? [table] : []), ...failedTable, wrapped(count.trim())].join('\n\n')
}

/** The accounts with the most calls in the last hour. */
export function topText({ accounts }: Overview): string {
  if (accounts === null) return 'Unknown: Redis does not answer.'
  if (accounts.length === 0) return 'No calls in the last hour.'
  const rows = accounts.map(({ id, email, calls, limited, refused, failed }) =>
    [email ?? id, calls, limited, refused, failed].map(String),
  )
  return textTable(['Account', 'Calls (1 h)', '429', 'Other 4xx', '5xx'], rows, { whole: ['Account'] })
}

/** A line for each account, and whether there are more accounts. */
export function usersText({ users, more }: { users: User[]; more: boolean }): string {
  if (users.length === 0) return 'No account matches.'
  const rows = users.map((user) => [
    user.email,
    user.tier,
    user.plan,
    accountState(user),
    user.createdAt.slice(0, 10),
    user.id,
  ])
  const table = textTable(['Email', 'Tier', 'Plan', 'State', 'Created', 'Id'], rows, {
    whole: ['Email', 'Created', 'Id'],
  })
  return more
    ? `${table}\n\n${users.length} shown, and there are more. Give a part of the email address to narrow the list.`
    : table
}

function accountState({ disabled, approved, emailVerified }: User): string {
  if (disabled) return 'disabled'
  if (approved) return 'approved'
  return emailVerified ? 'verified' : 'unverified'
}

/**
 * One account, and what it may do now. For example, an approval does not prove the email address.
 */
export function userText(user: User): string {
  return `${usersText({ users: [user], more: false })}\n\n${wrapped(mayDo(user))}`
}

function mayDo({ disabled, approved, emailVerified, liveCallsNeed }: User): string {
  if (disabled) return 'The account cannot log in, and the gateway refuses its calls.'
  if (liveCallsNeed === 'approval')
    return 'The gateway refuses its live calls until an operator approves the account (--approve).'
  if (liveCallsNeed === 'verification')
    return 'The gateway refuses its live calls until its email address is verified, or an operator approves the account (--approve).'
  const unproven = approved && !emailVerified
  return `The gateway answers its live calls.${unproven ? ' The approval does not verify its email address: if the gateway sends mail, nobody can add the account to a team before its owner has opened the link in the mail.' : ''}`
}

export function upstreamsText(upstreams: Upstream[]): string {
  return textTable(
    ['API', 'State', 'Tier', 'Key', 'Caps'],
    upstreams.map((upstream) => [
      upstream.slug,
      upstreamState(upstream),
      upstream.tierRequired,
      upstream.keyUnreadable ? 'unreadable' : upstream.hasKey ? 'set' : '',
      capsText(upstream.caps),
    ]),
    { whole: ['API', 'Caps'] },
  )
}

function upstreamState({ enabled, needsCallerKey, switchedOff, paused }: Upstream): string {
  if (paused !== null) return `paused (${paused})`
  if (enabled) return 'enabled'
  if (switchedOff) return 'switched off'
  return needsCallerKey ? "for callers' keys" : 'needs a key'
}

/** Caps in the form that `--caps` accepts. */
function capsText({ concurrency, rates }: Upstream['caps']): string {
  return [`concurrency=${concurrency}`, ...rates.map(({ max, seconds }) => `${max}/${seconds}`)].join(',')
}

export function auditText(records: ReturnType<typeof auditAnswer>[]): string {
  if (records.length === 0) return 'No operator has changed anything yet.'
  return textTable(
    ['When', 'Who', 'What', 'Subject', 'Change'],
    records.map(({ at, actor, action, subject, before, after }) => [
      at.slice(0, 16).replace('T', ' '),
      actor,
      action,
      subject,
      changesText(before, after),
    ]),
    { whole: ['When', 'Subject'] },
  )
}

/**
 * The changed members only: `tier developer → pro`, or `role operator` if there was no value
 * before.
 */
export function changesText(before: unknown, after: unknown): string {
  const old = Object(before)
  return Object.entries(Object(after))
    .filter(([name, value]) => JSON.stringify(old[name]) !== JSON.stringify(value))
    .map(([name, value]) => `${name} ${name in old ? `${valueText(old[name])} → ` : ''}${valueText(value)}`)
    .join(', ')
}

function valueText(value: unknown): string {
  return value === null || value === undefined
    ? 'default'
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value)
}

/** A line for each difference. */
export function settingsText({ applied, differences }: Static<typeof SettingsAnswer>): string {
  if (differences.length === 0) return 'The settings already have these values.'
  const rows = differences.map(({ slug, member, before, after }) => [
    slug,
    member,
    JSON.stringify(before),
    JSON.stringify(after),
  ])
  const end = applied ? 'All changes are in force.' : 'Nothing was changed.'
  return `${textTable(['API', 'Setting', 'Before', 'After'], rows, { whole: ['API'] })}\n\n${end}`
}
