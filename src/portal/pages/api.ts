import type { Api } from '../../catalog/catalog.ts'
import { sourceName } from '../../catalog/fallback.ts'
import { capWords } from '../../catalog/limit-words.ts'
import { type Html, html } from '../../pages/html.ts'
import type { ApiView, Visit } from '../catalog-view.ts'
import type { Condition } from '../condition.ts'
import { endpointSection } from './api-endpoint.ts'
import { healthOfTheDay } from './api-health.ts'
import { latencyOfTheDay } from './api-latency.ts'
import { categoryIcon } from './category-icon.ts'
import { capitalized, healthBadge, moment, planBadge } from './parts.ts'
import { planTable } from './plan-table.ts'

/**
 * The page of one API: state, terms, limits, and for each endpoint a form, code samples, the
 * response and errors.
 */
export function apiPage({ api, condition, past, latency }: ApiView, visit: Visit): Html {
  const { upstream, slug } = api
  const endpoints = [...api.endpoints.values()]
  return html`<div class="wrap" data-view="api">
<p class="crumbs"><a href="/">APIs</a> / ${upstream.displayName}</p>
<h1>${upstream.displayName}</h1>
<p class="lead">${upstream.description}</p>
<p class="badges">${healthBadge(condition)} ${planBadge(api)} <span class="badge">${categoryIcon(upstream.category)} ${capitalized(upstream.category)}</span></p>
${banner(api, condition)}
<p class="small"><a href="/docs/apis/${slug}.md">As Markdown</a> · <a href="/openapi.json">OpenAPI</a> · MCP server <code>${visit.baseUrl}/mcp/${slug}</code></p>
${
  endpoints.length < 2
    ? ''
    : html`<nav class="chips" aria-label="Endpoints">${endpoints.map(({ path }, index) => html`<a class="chip" href="#e${index}"><code>${path}</code></a>`)}</nav>`
}
${credentialBar(visit, slug)}
${endpoints.map((endpoint, index) => endpointSection({ api, endpoint, index, baseUrl: visit.baseUrl }))}
<div class="split facts-of-api">
<section class="card" aria-labelledby="limits-title">
<h2 id="limits-title">Limits</h2>
<dl><div><dt>At the source, for all callers of this gateway together</dt><dd>${capWords(api.caps)}</dd></div></dl>
${planTable(visit.plans, 'Your plan, over all APIs')}
</section>
<div>
<section class="card" aria-labelledby="health-title"><h2 id="health-title">Health of the last 24 hours</h2>${healthOfTheDay(condition, past)}${latency && latencyOfTheDay(latency)}</section>
<section class="card" aria-labelledby="terms-title">
<h2 id="terms-title">Terms of the source</h2>
${termsOf(upstream)}
${api.fallback ? secondSource(api, api.fallback) : ''}
</section>
</div>
</div>
</div>`
}

function termsOf({ terms }: Api['upstream']): Html {
  return html`<p>${terms.summary}</p>
${terms.attribution ? html`<p>Show: <q>${terms.attribution}</q></p>` : ''}
${terms.url ? html`<p><a href="${terms.url}" rel="noreferrer noopener">Read the terms</a></p>` : ''}
${terms.licence ? html`<p><a href="${terms.licence}" rel="license noreferrer noopener">Licence of the data</a></p>` : ''}`
}

function secondSource({ upstream }: Api, fallback: Api): Html {
  const [first, second] = [sourceName(upstream), sourceName(fallback.upstream)]
  return html`<h3>Second source: ${second}</h3>
<p>It answers when ${first} fails: ${capWords(fallback.caps)}. The <code>Link</code> header of an answer names its source with <code>rel="via"</code>.</p>
${termsOf(fallback.upstream)}`
}

/** What callers must know if the API is not healthy. */
function banner(api: Api, { word, since, reason, effect }: Condition): Html {
  if (effect === '') return html``
  return html`<div class="banner ${word === 'Down' ? 'bad' : 'fair'}" role="note">
<p><strong>${word}${since === undefined ? '' : html` since ${moment(since)}`}.</strong> ${reason}</p>
<p>${effect}${api.needsCallerKey ? html` <a href="/account/provider-keys">Save your key</a>` : ''}</p>
</div>`
}

/**
 * Chooses what the forms send: test or live data with the session, or a key. For visitors without a
 * log-in the page shows its recorded answers, which cost no call.
 */
function credentialBar({ isLoggedIn, signup }: Visit, slug: string): Html {
  const option = (value: string, label: string) =>
    html`<label class="option"><input type="radio" name="send-as" value="${value}"${value === 'test' ? html` checked` : ''}${!isLoggedIn && value === 'live' ? html` disabled` : ''}> ${label}</label>`
  return html`<form class="card sendbar" data-send-as${isLoggedIn ? '' : html` data-visitor`}>
<fieldset><legend>Send with</legend>
${option('test', 'Test data')}${option('live', 'Live data')}${option('key', 'An API key')}
</fieldset>
<div class="field grow" data-key-field${isLoggedIn ? html` hidden` : ''}><label for="api-key">API key</label><input id="api-key" type="password" autocomplete="off" spellcheck="false" placeholder="agw_test_… or agw_live_…" data-key><label class="option"><input type="checkbox" data-show-key> Show it in the code below</label></div>
<p class="small">${
    isLoggedIn
      ? 'Test data are recorded examples and cost nothing. Live data count against your plan.'
      : html`Test data are recorded examples, and you see them without an account. ${signup === 'closed' ? '' : html`<a href="/signup?next=/apis/${slug}">Sign up</a> or `}<a href="/login?next=/apis/${slug}">${signup === 'closed' ? 'Log in' : 'log in'}</a> for live data.`
  } A key stays in this tab’s memory. If the code shows it, Copy copies it too.</p>
</form>
<div class="card fresh" data-made-key hidden></div>`
}
