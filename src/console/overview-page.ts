import { escapeHtml } from '../browser/html.js'
import type { Snapshot } from '../fleet/snapshot.ts'
import type { Assets } from '../pages/assets.ts'
import { trusted } from '../pages/html.ts'
import { renderPlaces } from './browser/render.js'
import { byTrouble, isIdle } from './browser/rows.js'
import { consolePage, consoleStyles } from './console-page.ts'

/** What rows can be filtered by; the browser counts them. */
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

/** What the charts show. */
const RANGES = [
  ['quarter', '15 min'],
  ['hour', '1 h'],
  ['day', '24 h'],
]

const CONFIRM_DIALOG = `<dialog id="confirm" aria-labelledby="confirm-title" aria-describedby="confirm-text">
<form method="dialog"><h2 id="confirm-title"></h2><p id="confirm-text"></p>
<fieldset id="confirm-mode" hidden><legend>New calls</legend>
<label><input type="radio" name="mode" value="refuse" checked> refuse them at once: callers get 503 API_PAUSED</label>
<label><input type="radio" name="mode" value="hold"> hold them: they wait, and end with 503 at their deadline if it comes first</label></fieldset>
<menu><button value="no" class="quiet">Cancel</button><button value="yes" id="confirm-yes"></button></menu></form>
</dialog>`

/** The overview page with what there is to see now; its script keeps it so. */
export function overviewPage(snapshot: Snapshot, assets: Assets): string {
  const places = renderPlaces(snapshot)
  const place = (name: string, element = 'div', attributes = ''): string =>
    `<${element} data-place="${escapeHtml(name)}"${attributes}>${places[name] ?? ''}</${element}>`
  const rows = byTrouble(snapshot.upstreams).map((row) => {
    const { slug, name } = row
    const cell = (what: string, label: string) => place(`${slug} ${what}`, 'td', ` data-label="${label}"`)
    return `<tr id="${escapeHtml(slug)}"${isIdle(row) ? ' class="idle"' : ''}><th scope="row">${escapeHtml(slug)}<small>${escapeHtml(name)} · <a href="/queues/${escapeHtml(slug)}">queue<span class="sr"> of ${escapeHtml(slug)}</span></a> · <a href="/accounts?api=${escapeHtml(slug)}">callers<span class="sr"> of ${escapeHtml(slug)}</span></a></small></th>
${cell('health', 'Health')}${cell('queue', 'Queue')}${cell('cap', 'Cap left')}${cell('traffic', 'Traffic')}${cell('actions', 'Actions').replace('<td', '<td class="actions"')}</tr>`
  })
  const main = `<h1>${place('headline', 'span')}</h1>
<section aria-label="Needs attention">${place('attention')}</section>
${place('tiles', 'dl', ' class="tiles"')}
<fieldset class="chips ranges"><legend class="sr">Time of the charts</legend>${RANGES.map(([value, label]) => `<label class="chip"><input type="radio" name="range" value="${value}"${value === 'hour' ? ' checked' : ''}> ${label}</label>`).join('')}</fieldset>
<section class="charts" aria-label="Charts">
<figure><figcaption>Calls a minute</figcaption><div class="chart" id="chart-calls" role="img" aria-label="Calls a minute: answered, refused and failed"></div></figure>
<figure><figcaption>Time in the queue</figcaption><div class="chart" id="chart-queue" role="img" aria-label="Time in the queue, median and 95th percentile"></div></figure>
<figure><figcaption>Time at the upstream</figcaption><div class="chart" id="chart-upstream" role="img" aria-label="Time at the upstream, median and 95th percentile"></div></figure>
</section>
<section id="upstreams" tabindex="-1">
<div class="bar"><h2>APIs</h2><div class="chips" role="group" aria-label="Show only">${CHIPS.map(([tag, label]) => `<button type="button" class="chip" data-tag="${tag}" aria-pressed="false">${label} <span data-count="${tag}"></span></button>`).join('')}</div><label>Find <input type="search" id="filter" placeholder="name" autocomplete="off"></label></div>
<table class="upstreams" aria-label="APIs"><thead><tr><th scope="col">API</th><th scope="col">Health</th><th scope="col">Queue</th><th scope="col">Cap left</th><th scope="col">Traffic</th><th scope="col">Actions</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table>
<p id="none" class="calm" hidden>No API fits.</p>
<p class="folded" id="folded" hidden><span></span> <button type="button" id="more"></button></p>
</section>
<div class="columns">
<section><h2>Errors of the last hour</h2>${place('errors')}</section>
<section><h2>Accounts, last hour</h2>${place('accounts')}</section>
<section><h2>Changes of health</h2>${place('changes')}</section>
<section><h2>Operators</h2>${place('audit')}<p><a href="/audit">All changes</a></p></section>
</div>
<div class="columns">
<section><h2>Processes</h2>${place('processes')}</section>
<section><h2>Stores</h2>${place('stores')}</section>
</div>
`
  const outside = `${CONFIRM_DIALOG}
<p id="notice" role="status" aria-live="polite"></p>`
  return consolePage(assets, {
    title: 'Agent API Gateway console',
    path: '/',
    skipTo: ['upstreams', 'Skip to the APIs'],
    styles: ['browser/uplot.css', 'browser/base.css', ...consoleStyles('frame', 'overview', 'tables')],
    script: 'console/browser/overview.js',
    main: trusted(main),
    outside: trusted(outside),
  })
}
