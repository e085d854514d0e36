import { escapeHtml } from '../browser/html.js'
import type { Snapshot } from '../fleet/snapshot.ts'
import type { OperatorNotice } from '../operator/operator-notice.ts'
import type { Assets } from '../pages/assets.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import { CONFIRM_DIALOG } from './api-actions.ts'
import { apisTable } from './apis-table.ts'
import { renderPlaces } from './browser/render.js'
import { byTrouble, OVERVIEW_COLUMNS } from './browser/rows.js'
import { consolePage, consoleStyles } from './console-page.ts'

/** Filters of the rows. The browser counts the matches. */
const CHIPS = [
  ['down', 'Down'],
  ['limited', 'Limited'],
  ['degraded', 'Degraded'],
  ['failing', 'Failing'],
  ['capped', 'Cap used up'],
  ['waiting', 'Waiting'],
  ['paused', 'Paused'],
  ['disabled', 'Disabled'],
]

/** Periods that the charts can show. */
const RANGES = [
  ['quarter', '15 min'],
  ['hour', '1 h'],
  ['day', '24 h'],
]

/** The present notice of the portal's pages, with a form that changes it. */
function noticeSection(notice: OperatorNotice | undefined): Html {
  const shown = notice
    ? html`<p>Shown until ${notice.until.slice(0, 16).replace('T', ' ')} (UTC): ${notice.text}</p>
<form method="post" action="/notice"><button type="submit">End it now</button></form>`
    : html`<p class="calm">The pages show no notice.</p>`
  return html`${shown}
<details><summary>Show a notice</summary><form class="write" method="post" action="/notice">
<label>Text <input name="text" required maxlength="300" autocomplete="off"></label>
<label>Until (UTC) <input type="datetime-local" name="until" required></label>
<button type="submit">Show it</button></form></details>`
}

/** The overview page with the present state. Its script keeps it up to date. */
export function overviewPage(snapshot: Snapshot, assets: Assets, notice?: OperatorNotice): string {
  const places = renderPlaces(snapshot)
  const place = (name: string, element = 'div', attributes = ''): string =>
    `<${element} data-place="${escapeHtml(name)}"${attributes}>${places[name] ?? ''}</${element}>`
  const rows = byTrouble(snapshot.upstreams)
  const main = `<h1>${place('headline', 'span')}</h1>
<section aria-label="Needs attention">${place('attention')}</section>
${place('tiles', 'dl', ' class="tiles strip"')}
<div class="fleet">
<div><section id="apis" class="dense" tabindex="-1">
<div class="bar"><h2>APIs</h2><div class="chips" role="group" aria-label="Show only">${CHIPS.map(([tag, label]) => `<button type="button" class="chip" data-tag="${tag}" aria-pressed="false" hidden>${label} <span data-count></span></button>`).join('')}</div><label>Find <input type="search" id="filter" placeholder="name" autocomplete="off"></label></div>
${apisTable('APIs', { rows, at: snapshot.at, columns: OVERVIEW_COLUMNS })}
<p id="none" class="calm" hidden>No API matches.</p>
<p class="calm note">Calls, calls that failed (5xx) and the 95th percentile of the time at the source: the last 5 minutes. Cap used: its fullest rate, and if that is used up, the time until the next slot. Waiting: beside it how long the oldest call has waited.</p>
</section>
<div class="past"><fieldset class="chips ranges"><legend class="sr">Time of the charts</legend>${RANGES.map(([value, label]) => `<label class="chip"><input type="radio" name="range" value="${value}"${value === 'hour' ? ' checked' : ''}> ${label}</label>`).join('')}</fieldset>
<section class="charts" aria-label="Charts">
<figure><figcaption>Calls a minute</figcaption><div class="chart" id="chart-calls" role="img" aria-label="Calls a minute: answered, refused and failed"></div></figure>
<figure><figcaption>Time in the queue</figcaption><div class="chart" id="chart-queue" role="img" aria-label="Time in the queue, median and 95th percentile"></div></figure>
<figure><figcaption>Time at the upstream</figcaption><div class="chart" id="chart-upstream" role="img" aria-label="Time at the upstream, median and 95th percentile"></div></figure>
</section></div>
</div>
<div><div class="columns own dense"><section><h2>Processes</h2>${place('processes')}</section>
<section><h2>Stores</h2>${place('stores')}</section></div>
<div class="columns rest dense">
<section><h2>Errors of the last hour</h2>${place('errors')}</section>
<section><h2>Accounts, last hour</h2>${place('accounts')}</section>
<section><h2>Changes of health</h2>${place('changes')}</section>
<section><h2>Operators</h2>${place('audit')}<p><a href="/audit">All changes</a></p></section>
<section><h2>Notice to all users</h2>${noticeSection(notice)}</section>
</div>
</div>
</div>
`
  return consolePage(assets, {
    title: 'Agent API Gateway console',
    path: '/',
    skipTo: ['apis', 'Skip to the APIs'],
    styles: ['browser/uplot.css', 'browser/base.css', ...consoleStyles('frame', 'overview', 'tables')],
    script: 'console/browser/overview.js',
    main: trusted(main),
    outside: CONFIRM_DIALOG,
  })
}
