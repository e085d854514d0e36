import type { Static } from 'typebox'
import { durationWords, timingBar } from '../browser/timing-bar.js'
import type { AccountUsage } from '../db/account-usage.ts'
import type { AccountReport } from '../operator/account-report.ts'
import type { Assets } from '../pages/assets.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import type { AccountedCallAnswer, LoggedCallAnswer } from '../telemetry/logged-call.ts'
import { table } from './browser/parts.js'
import { consolePage, consoleStyles } from './console-page.ts'

type AccountedCall = Static<typeof AccountedCallAnswer>

const STYLES = ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables', 'queues', 'text')]

/** A call with the parts of its time; of a request with several calls each of them. */
export function callPage(calls: AccountedCall[], assets: Assets): string {
  const [first] = calls
  const title = calls.length === 1 ? `Call ${first?.id}` : `${calls.length} calls of request ${first?.requestId}`
  const sections = calls.map((call) => {
    const name = html`${nameOf(call)} ${statusOf(call)}`
    return html`<section aria-label="Call ${call.id}"><h2>${name} <small>took ${durationWords(call.totalMs)}</small></h2>
${trusted(timingBar(call))}
<dl class="tiles">${callFacts(call)}</dl></section>
`
  })
  const main = html`<h1>${title}</h1>
<div id="call" tabindex="-1">
${sections}</div>
`
  return page(assets, { title, skipTo: ['call', 'Skip to the call'], main })
}

function callFacts(call: AccountedCall): Html[] {
  const { account, key, code } = call
  const madeBy = key === null ? 'a session' : `${key.application ?? key.label ?? 'no label'} (…${key.lastFour ?? ''})`
  return [
    fact('Ended', time(call.at)),
    fact('Answer', code === null ? `${call.status}` : html`${call.status} ${code}`),
    fact('Cause', call.cause ?? '–'),
    fact('Account', accountLink(account)),
    fact('Key or app', madeBy),
    fact('Came by', `${call.via}${call.tool === null ? '' : `, ${call.tool}`}, ${call.mode}`),
    fact('API', call.api === '-' ? '–' : html`<a href="/queues/${call.api}">${call.api}</a>`),
    fact('Attempts', call.attempts === null ? '–' : `${call.attempts}`),
    fact('Stored answer', call.cache ?? '–'),
    fact('Length', call.bytes === null ? '–' : `${call.bytes} bytes`),
    fact('Call id', call.id),
    fact('Request id', call.requestId ?? '–'),
  ]
}

/** What the list of calls shows, as its address says. */
export interface CallList {
  calls: AccountedCall[]
  /** `api`, `status`, `account` and the others of the log's filters. */
  filter: Record<string, string>
  /** Address of the next page; undefined on the last page. */
  next: string | undefined
}

const STATUSES = [
  ['', 'all answers'],
  ['2xx', 'answered'],
  ['4xx', 'refused (4xx)'],
  ['5xx', 'failed (5xx)'],
] as const

/** The latest calls of all accounts, or those that a filter fits. */
export function callsPage({ calls, filter, next }: CallList, assets: Assets): string {
  const rows = calls.map((call) => [...callCells(call), accountLink(call.account)])
  const empty = next === undefined ? 'No call fits.' : 'None of the calls searched so far matches. Look further back.'
  const main = html`<h1>Calls <small>newest first, UTC</small></h1>
<form class="filters" method="get" action="/calls">
<label>API <input type="search" name="api" value="${filter.api ?? ''}" maxlength="64" autocomplete="off"></label>
<label>Answers <select name="status">${STATUSES.map(([value, text]) => html`<option value="${value}"${value === (filter.status ?? '') ? html` selected` : ''}>${text}</option>`)}</select></label>
<label>Account <input type="search" name="account" value="${filter.account ?? ''}" placeholder="id" maxlength="40" autocomplete="off"></label>
<button type="submit">Filter</button>
</form>
<section id="calls" tabindex="-1">${calls.length === 0 ? none(empty) : callRows('Calls', [...CALL_HEADS, 'Account'], rows)}
${next && html`<p><a href="${next}">Older calls</a></p>`}</section>
`
  return page(assets, { title: 'Calls', path: '/calls', skipTo: ['calls', 'Skip to the calls'], main })
}

/** An account, its keys and its calls. The account can be disabled, and its keys revoked. */
export function accountPage(report: AccountReport, assets: Assets): string {
  const { user, apis, keys, connections, failures, calls } = report
  const main = html`<h1>${user.email} <small>${user.id}</small></h1>
<dl class="tiles">
${fact('Plan', `${user.plan} (${user.tier})`)}${fact('State', stateOf(user))}${fact('Live calls', user.liveCallsNeed === null ? 'are answered' : `need ${user.liveCallsNeed}`)}${fact('Since', time(user.createdAt))}
</dl>
${disableForm(user)}
<section id="account" tabindex="-1"><h2>Calls by API <small>today and yesterday, UTC</small></h2>
${
  apis.length === 0
    ? none('No calls.')
    : tableOf(
        'Calls by API',
        ['API', 'Day', 'Calls', 'Refused (4xx)', 'Failed (5xx)'],
        apis.map((line) => [
          line.api === '-' ? 'no API' : html`<a href="/accounts?api=${line.api}">${line.api}</a>`,
          line.day,
          `${line.calls}`,
          `${line.refused}`,
          `${line.failed}`,
        ]),
      )
}</section>
<section><h2>Last failures</h2>${callTable('Last failures', failures)}</section>
<section><h2>Keys</h2>${
    keys.length === 0
      ? none('No keys.')
      : tableOf(
          'Keys',
          ['Key', 'Mode', 'Created', 'Last used', 'Action'],
          keys.map((key) => [
            html`${key.label ?? 'no label'} (…${key.lastFour})<small>${key.id}${key.teamId === null ? '' : `, team ${key.teamId}`}</small>`,
            key.environment,
            time(key.createdAt),
            key.lastUsedAt === null ? 'never' : time(key.lastUsedAt),
            revokeForm(user.id, key),
          ]),
        )
  }</section>
<section><h2>Connected applications</h2>${
    connections.length === 0
      ? none('None.')
      : tableOf(
          'Connected applications',
          ['Application', 'Since', 'Last used'],
          connections.map((one) => [
            one.application,
            time(one.createdAt),
            one.lastUsedAt === null ? 'never' : time(one.lastUsedAt),
          ]),
        )
  }</section>
<section><h2>Last calls</h2>${callTable('Last calls', calls)}<p><a href="/calls?account=${user.id}">All its calls</a></p></section>
`
  return page(assets, { title: `Account ${user.email}`, skipTo: ['account', 'Skip to the calls'], main })
}

/**
 * The button that disables appears only after a click, as the button that revokes a key. Enabling
 * needs no question, because it can be undone.
 */
function disableForm({ id, disabled }: AccountReport['user']): Html {
  if (disabled)
    return html`<form method="post" action="/accounts/${id}/enable"><button type="submit">Enable the account</button></form>`
  return html`<details><summary>Disable the account</summary><form method="post" action="/accounts/${id}/disable"><p>It cannot log in, and its calls are refused from the next request on. Calls that wait are cancelled.</p><button type="submit">Disable it now</button></form></details>`
}

/** The question comes before the deed. The button that revokes appears only after a click. */
function revokeForm(accountId: string, { id, label, lastFour }: AccountReport['keys'][number]): Html {
  const name = `${label ?? 'no label'} (…${lastFour})`
  return html`<details><summary aria-label="Revoke ${name}">Revoke</summary><form method="post" action="/accounts/${accountId}/keys/${id}/revoke"><p>Applications that use ${name} stop working at once.</p><button type="submit">Revoke it now</button></form></details>`
}

function stateOf({ disabled, approved, emailVerified }: AccountReport['user']): string {
  if (disabled) return 'disabled'
  return approved ? 'approved' : emailVerified ? 'address verified' : 'address not verified'
}

function callTable(label: string, calls: LoggedCallAnswer[]): Html {
  if (calls.length === 0) return none('None in the log.')
  return callRows(label, CALL_HEADS, calls.map(callCells))
}

const CALL_HEADS = ['Ended', 'API', 'Answer', 'Took', 'Came by']

function callCells(call: LoggedCallAnswer): (string | Html)[] {
  return [
    html`<a href="/calls/${call.id}">${time(call.at)}</a>`,
    nameOf(call),
    html`${statusOf(call)}${call.cause === null ? '' : html`<small>${call.cause}</small>`}`,
    durationWords(call.totalMs),
    `${call.via}, ${call.mode}`,
  ]
}

/** Who uses the cap of an API. */
export function apiAccountsPage(slug: string, accounts: AccountUsage[], assets: Assets): string {
  const rows = accounts.map(({ id, email, calls, refused, failed }) => [
    accountLink({ id, email }),
    ...[calls, refused, failed].map(String),
  ])
  const main = html`<h1>Accounts of ${slug} <small>today, UTC · <a href="/queues/${slug}">queue</a></small></h1>
<section id="accounts" tabindex="-1">${accounts.length === 0 ? none('Nobody has called it today.') : tableOf('Accounts', ['Account', 'Calls', 'Refused (4xx)', 'Failed (5xx)'], rows)}</section>
`
  return page(assets, { title: `Accounts of ${slug}`, skipTo: ['accounts', 'Skip to the accounts'], main })
}

/** What the search box did not find. */
export function notFoundPage(text: string, assets: Assets): string {
  const main = html`<h1>Nothing found</h1>
<section id="found" tabindex="-1">
<p>No call, request or account is “${text}”.</p>
<p>The box takes an X-Call-Id (<code>call_…</code>), an X-Request-Id (<code>req_…</code>), and the address or id of an account. A call shows about a second after its end, and for as many days as CALL_LOG_DAYS says.</p>
</section>
`
  return page(assets, { title: 'Nothing found', skipTo: ['found', 'Skip to the text'], main })
}

function page(
  assets: Assets,
  { title, path, skipTo, main }: { title: string; path?: '/calls'; skipTo: [id: string, text: string]; main: Html },
): string {
  const words = `${title} · Agent API Gateway console`
  return consolePage(assets, { title: words, ...(path && { path }), skipTo, styles: STYLES, main })
}

function tableOf(label: string, heads: string[], rows: (string | Html)[][]): Html {
  return trusted(table(label, heads, rows.map((cells) => cells.map((cell) => html`${cell}`.text)))) // biome-ignore format: one line
}

/** On a phone the values of a call stand beside each other, because they say what they are. */
function callRows(label: string, heads: string[], rows: (string | Html)[][]): Html {
  return html`<div class="brief">${tableOf(label, heads, rows)}</div>`
}

function fact(name: string, value: string | Html): Html {
  return html`<div class="tile fact"><dt>${name}</dt><dd>${value}</dd></div>`
}

function none(text: string): Html {
  return html`<p class="calm">${text}</p>`
}

/** An account that is gone has no page, and its calls stay as long as the log does. */
function accountLink({ id, email }: { id: string; email: string | null }): Html {
  return email === null
    ? html`<a href="/calls?account=${id}">${id.slice(0, 8)}… (gone)</a>`
    : html`<a href="/accounts/${id}">${email}</a>`
}

const nameOf = ({ api, endpoint }: LoggedCallAnswer): string => (api === '-' ? 'no API' : `${api}${endpoint ?? ''}`)

function statusOf({ status, code }: LoggedCallAnswer): Html {
  return html`<span class="${status < 400 ? 'ok' : 'bad'}">${status}${code === null ? '' : ` ${code}`}</span>`
}

/** UTC, to the second. */
function time(iso: string): Html {
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')}</time>`
}
