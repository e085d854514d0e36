import type { Static } from 'typebox'
import { durationWords } from '../browser/timing-bar.js'
import { countOf } from '../fleet/words.js'
import type { AccountedCallAnswer, LoggedCallAnswer } from '../telemetry/logged-call.ts'
import type { AccountReport } from './account-report.ts'
import { userText } from './answers-as-text.ts'
import { textTable } from './text-table.ts'

type Call = Static<typeof AccountedCallAnswer>

/** The outcome of a call and where its time went, or of each call of a request. */
export function callsText(calls: Call[]): string {
  return calls.map(callText).join('\n\n')
}

function callText(call: Call): string {
  const { account, key } = call
  const times = [
    `admission ${ms(call.admissionMs)}`,
    `queue ${ms(call.queueMs)}`,
    `permit ${ms(call.permitMs)}`,
    `upstream ${ms(call.upstreamMs)} in ${countOf(call.attempts ?? 0, 'attempt')}`,
    `in all ${ms(call.totalMs)}`,
  ]
  const rows = [
    ['Call', call.id],
    ['Request', call.requestId ?? 'unknown'],
    ['Ended', call.at],
    ['API', `${call.api}${call.endpoint ?? ''}`],
    ['Answer', answerOf(call)],
    ['Account', `${account.email ?? 'gone'} (${account.id})`],
    ['Key', key === null ? 'a session' : `${key.application ?? key.label ?? 'no label'} (${key.id})`],
    ['Came by', `${call.via}${call.tool === null ? '' : `, ${call.tool}`}, ${call.mode}`],
    ['Time', times.join(', ')],
    ['Quoted wait', ms(call.quotedMs)],
    ['Stored answer', call.cache ?? '-'],
  ]
  return rows.map(([name = '', value = '']) => `${name.padEnd(14)} ${value}`).join('\n')
}

function answerOf({ status, code, cause, bytes }: LoggedCallAnswer): string {
  const why = cause === null ? '' : `: ${cause}`
  return code === null ? `${status}${bytes === null ? '' : `, ${bytes} bytes`}` : `${status} ${code}${why}`
}

function ms(value: number | null): string {
  return value === null ? '-' : durationWords(value)
}

/** An account as text: its plan, APIs, keys, connections and last failures. */
export function accountText({ user, apis, failures, keys, connections }: AccountReport): string {
  const usage = apis.map(({ day, api, calls, refused, failed }) => [day, api, `${calls}`, `${refused}`, `${failed}`])
  const keyRows = keys.map(({ id, environment, label, lastFour, lastUsedAt }) => [
    ...[id, environment, `…${lastFour}`, label ?? '', minute(lastUsedAt)],
  ])
  const apps = connections.map(({ id, application, lastUsedAt }) => [id, application, minute(lastUsedAt)])
  const failed = failures.map((call) => [minute(call.at), `${call.api}${call.endpoint ?? ''}`, answerOf(call), call.id])
  return [
    userText(user),
    section('Calls by API, test calls included (UTC days)', usage, {
      heads: ['Day', 'API', 'Calls', 'Refused', '5xx'],
      whole: ['Day', 'API'],
    }),
    section('Keys', keyRows, { heads: ['Id', 'Mode', 'Ends in', 'Label', 'Last used'], whole: ['Id', 'Last used'] }),
    section('Connected applications', apps, { heads: ['Id', 'Application', 'Last used'], whole: ['Id', 'Last used'] }),
    section('Last failures', failed, { heads: ['Ended', 'API', 'Answer', 'Call'], whole: ['Ended', 'Call'] }),
  ].join('\n\n')
}

function section(title: string, rows: string[][], { heads, whole }: { heads: string[]; whole: string[] }): string {
  return `${title}\n${rows.length === 0 ? 'none' : textTable(heads, rows, { whole })}`
}

function minute(iso: string | null): string {
  return iso === null ? 'never' : iso.slice(0, 16).replace('T', ' ')
}
