import type { Static } from 'typebox'
import { durationWords, timingBar } from '../browser/timing-bar.js'
import type { Assets } from '../pages/assets.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import type { AccountedCallAnswer } from '../telemetry/logged-call.ts'
import { accountLink, CALL_HEADS, callCells, callRows, fact, nameOf, statusOf, textPage, time } from './page-parts.ts'

type AccountedCall = Static<typeof AccountedCallAnswer>

/** A call with the parts of its time, or each call of a request. */
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
  return textPage(assets, { title, skipTo: ['call', 'Skip to the call'], main })
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

/** The filters of the list of calls, from its address. */
export interface CallList {
  calls: AccountedCall[]
  /** The filters of the log, such as `api`, `status` and `account`. */
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

/** The latest calls of all accounts, or the calls that fit a filter. */
export function callsPage({ calls, filter, next }: CallList, assets: Assets): string {
  const rows = calls.map((call) => [...callCells(call), accountLink(call.account)])
  const empty =
    next === undefined ? 'No call matches.' : 'None of the calls searched so far matches. Look further back.'
  const main = html`<h1>Calls <small>newest first, UTC</small></h1>
<form class="filters" method="get" action="/calls">
<label>API <input type="search" name="api" value="${filter.api ?? ''}" maxlength="64" autocomplete="off"></label>
<label>Answers <select name="status">${STATUSES.map(([value, text]) => html`<option value="${value}"${value === (filter.status ?? '') ? html` selected` : ''}>${text}</option>`)}</select></label>
<label>Account <input type="search" name="account" value="${filter.account ?? ''}" placeholder="id or email" maxlength="320" autocomplete="off"></label>
<button type="submit">Filter</button>
</form>
<section id="calls" tabindex="-1">${callRows('Calls', { heads: [...CALL_HEADS, 'Account'], rows, empty })}
${next && html`<p><a href="${next}">Older calls</a></p>`}</section>
`
  return textPage(assets, { title: 'Calls', path: '/calls', skipTo: ['calls', 'Skip to the calls'], main })
}

/** The page if the search box found nothing. */
export function notFoundPage(text: string, assets: Assets): string {
  const main = html`<h1>Nothing found</h1>
<section id="found" tabindex="-1">
<p>No call, request or account matches “${text}”.</p>
<p>Search for an X-Call-Id (<code>call_…</code>), an X-Request-Id (<code>req_…</code>), or the email address or id of an account. A call appears about a second after its end, and stays for CALL_LOG_DAYS days.</p>
</section>
`
  return textPage(assets, { title: 'Nothing found', skipTo: ['found', 'Skip to the text'], main })
}
