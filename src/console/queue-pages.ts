import type { QueueView } from '../fleet/fleet-reader.ts'
import type { QueueContents, QueuedCall } from '../fleet/queue-contents.ts'
import type { Snapshot, UpstreamRow } from '../fleet/snapshot.ts'
import { countOf, span } from '../fleet/words.js'
import type { Assets } from '../pages/assets.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import { apiActions, CONFIRM_DIALOG } from './api-actions.ts'
import { apiFacts } from './api-facts.ts'
import { apisTable } from './apis-table.ts'
import { table } from './browser/parts.js'
import { consolePage, consoleStyles } from './console-page.ts'
import { fact, none } from './page-parts.ts'

const STYLES = ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables', 'queues')]

/** Explains where failed calls are, because operators look for them here. */
const NO_FINISHED_CALLS = html`<p class="calm">Calls that wait or run now. Finished calls are in the log of <a href="/calls">Calls</a>.</p>`

const UNKNOWN = none('Unknown: Redis does not answer.')

const COLUMNS = ['state', 'waiting', 'active', 'cap', 'jobs']

/** The queues of all APIs, the queue with most calls first. */
export function queuesPage({ upstreams, at }: Snapshot, assets: Assets): string {
  const rows = [...upstreams].sort((a, b) => callsOf(b) - callsOf(a) || a.slug.localeCompare(b.slug))
  const main = html`<h1>Queues</h1>
${NO_FINISHED_CALLS}
<section id="queues" class="dense" tabindex="-1" data-live>${apisTable('Queues', { rows, at, columns: COLUMNS })}</section>
`
  return page(assets, { title: 'Queues', skipTo: ['queues', 'Skip to the queues'], main })
}

/**
 * Everything about an API: facts, actions, and its waiting and running calls in the order in which
 * they will be served.
 */
export function queuePage({ at, row, workers, contents }: QueueView, assets: Assets): string {
  const { slug } = row
  const facts = [...apiFacts(row, at), ['Workers', workersText(workers)] as const]
  const main = html`<h1>${slug} <small>${row.name}</small><small class="ways"><a href="/accounts?api=${slug}">callers</a> <a href="/calls?api=${slug}">finished calls</a> <a href="/queues">all queues</a></small></h1>
<div data-live="facts"><dl class="tiles">
${facts.map(([name, value]) => fact(name, value))}
</dl>${apiActions(row)}</div>
<section id="calls" tabindex="-1">
<div class="bar"><h2>Calls</h2><label>Find <input type="search" id="filter" placeholder="account, call or parameter" autocomplete="off"></label></div>
${NO_FINISHED_CALLS}
<div data-live="calls">${contents === null ? UNKNOWN : callsTable(contents)}</div>
</section>
<div class="columns" data-live="jobs">
<section><h2>Probes and key checks</h2>${contents === null ? UNKNOWN : othersTable(contents)}</section>
<section><h2>Crashed jobs</h2>${contents === null ? UNKNOWN : failedTable(contents, at)}</section>
</div>
`
  return page(assets, { title: slug, skipTo: ['calls', 'Skip to the calls'], main, outside: CONFIRM_DIALOG })
}

function page(
  assets: Assets,
  { title, ...rest }: { title: string; skipTo: [id: string, text: string]; main: Html; outside?: Html },
): string {
  return consolePage(assets, {
    title: `${title} · Agent API Gateway console`,
    path: '/queues',
    styles: STYLES,
    script: 'console/browser/queues.js',
    ...rest,
  })
}

function callsOf({ queue }: UpstreamRow): number {
  return queue ? queue.waiting + queue.active : 0
}

function workersText(workers: number | null): Html {
  if (workers === null) return html`<small>unknown</small>`
  return workers === 0
    ? html`<b class="bad">none serves it</b>`
    : html`<b>${workers}</b><small>${workers === 1 ? 'serves' : 'serve'} it</small>`
}

function callsTable({ calls, isCut }: QueueContents): Html {
  if (calls.length === 0) return none('No call waits or runs.')
  const rows = calls.map((call) => [
    stateText(call).text,
    html`<code>${call.id}</code><small>${kindText(call)}</small>`.text,
    html`${call.email ?? html`<code>${call.accountId}</code>`}`.text,
    parametersText(call).text,
    span(call.waitedMs),
    call.leftMs > 0 ? span(call.leftMs) : '<b class="bad">over</b>',
  ])
  const first = isCut ? none(`The first ${countOf(calls.length, 'call')}; there are more.`) : ''
  return html`${first}${trusted(table('Calls', ['State', 'Call', 'Account', 'Request', 'Age', 'Deadline in'], rows))}`
}

function stateText({ state, ahead }: QueuedCall): Html {
  switch (state) {
    case 'under-way':
      return html`under way<small>at a worker</small>`
    case 'waiting-for-worker':
      return html`waiting<small>for a worker</small>`
    case 'held':
      return html`waiting<small>until an operator resumes the API</small>`
    case 'waiting-for-cap':
      return html`waiting<small>for the cap, ${ahead ? `${countOf(ahead, 'call')} before it` : 'next'}</small>`
  }
}

function kindText({ mode, isAsync, hasOwnKey }: QueuedCall): string {
  const kinds = [isAsync ? 'asynchronous' : '', mode === 'test' ? 'test' : '', hasOwnKey ? "caller's own key" : '']
  return kinds.filter(Boolean).join(' · ')
}

function parametersText({ endpoint, parameters, undeclared }: QueuedCall): Html {
  const values = parameters.map(([name, value]) => html`<span class="parameter">${name}=<code>${value}</code></span> `)
  const hidden = undeclared.length > 0 ? html`<small>undeclared, not shown: ${undeclared.join(', ')}</small>` : ''
  return html`<code>${endpoint}</code><small>${values}</small>${hidden}`
}

function othersTable({ others }: QueueContents): Html {
  if (others.length === 0) return none('None is scheduled.')
  const rows = others.map(({ title, isRunning, dueInMs }) => [
    html`${title}`.text,
    isRunning ? 'at a worker' : dueInMs > 0 ? `in ${span(dueInMs)}` : 'waits for a worker',
  ])
  return trusted(table('Probes and key checks', ['Job', 'When'], rows))
}

function failedTable({ failed }: QueueContents, now: number): Html {
  if (failed.length === 0) return none('None in the last hour.')
  const rows = failed.map(({ id, name, at, reason }) => [
    html`${name}<small><code>${id}</code></small>`.text,
    html`${reason}`.text,
    `${span(Math.max(0, now - at))} ago`,
  ])
  return trusted(table('Crashed jobs', ['Job', 'Why', 'When'], rows))
}
