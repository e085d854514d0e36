import type { Api, Catalog } from '../../catalog/catalog.ts'
import { exampleCall } from '../../catalog/example-call.ts'
import { type Html, html } from '../../http/html.ts'
import { PLACEHOLDER } from '../assets/snippets.js'
import type { ApiState } from '../catalog-view.ts'
import { codeBlock, healthBadge, planBadge } from './parts.ts'

/** What this is, and the catalog. */
export function homePage(catalog: Catalog, states: Map<string, ApiState>, baseUrl: string): Html {
  const apis = [...catalog.values()].filter(({ slug }) => states.has(slug))
  const endpoints = apis.reduce((sum, api) => sum + api.endpoints.size, 0)
  return html`
<section class="hero">
<div class="wrap split">
<div>
<h1>${apis.length} data APIs.<br>One key.</h1>
<p class="lead">Weather, currencies, news, encyclopedia and more behind one HTTP interface, for people and for agents: one form of answer, errors that say what to do next, and the upstreams’ limits kept for you.</p>
<p class="actions"><a class="button big" href="/signup">Get a key</a> <a class="button quiet big" href="#catalog">See the catalog</a></p>
<p class="small">Free plan, no card. A test key answers from recorded examples at once.</p>
</div>
${demo(catalog, baseUrl)}
</div>
</section>
<section class="wrap steps" aria-label="How it works">
<ol>
<li><h2>Sign up</h2><p>An email and a password.</p></li>
<li><h2>Make a key</h2><p>Test keys for building, live keys for the real data.</p></li>
<li><h2>Call</h2><p>Try any API in the browser, or paste the snippet: curl, JavaScript, Python, MCP.</p></li>
</ol>
</section>
<section class="wrap" id="catalog" data-view="catalog" aria-labelledby="catalog-title">
<div class="row"><h2 id="catalog-title">Catalog</h2><p class="small">${apis.length} APIs, ${endpoints} endpoints</p></div>
<form class="filters" role="search" data-filters>
<div class="field"><label for="q">Search</label><input id="q" name="q" type="search" placeholder="weather, exchange rates, ip address" autocomplete="off"></div>
<div class="field"><label for="category">Category</label><select id="category" name="category"><option value="">All categories</option>${categories(apis)}</select></div>
<div class="field"><label for="health">Health</label><select id="health" name="health"><option value="">Any health</option><option>Healthy</option><option>Degraded</option><option>Down</option></select></div>
</form>
<p class="small" role="status" data-count></p>
<ul class="grid" data-cards>${apis.map((api) => card(api, states.get(api.slug)))}</ul>
<p class="empty" data-empty hidden>No API fits. <button type="button" class="link" data-clear>Show all</button></p>
</section>`
}

function demo(catalog: Catalog, baseUrl: string): Html {
  const api = catalog.get('weather') ?? [...catalog.values()][0]
  const endpoint = api && [...api.endpoints.values()][0]
  if (!api || !endpoint) return html``
  const members = Object.entries(endpoint.endpoint.example.data).slice(0, 5)
  const answer = JSON.stringify({ status: 'success', data: Object.fromEntries(members) }, null, 2)
  return html`<div class="demo">
${codeBlock(`curl -H 'X-Api-Key: ${PLACEHOLDER}' \\\n  '${baseUrl}${exampleCall(api.slug, endpoint)}'`, 'call')}
<pre class="answer" tabindex="0" aria-label="Answer"><code>${answer.replace(/\n {2}\}\n\}$/, ',\n    …\n  }\n}')}</code></pre>
</div>`
}

function categories(apis: Api[]): Html[] {
  const counts = Map.groupBy(apis, (api) => api.upstream.category)
  const sorted = [...counts].sort(([a], [b]) => a.localeCompare(b))
  return sorted.map(([name, { length }]) => html`<option value="${name}">${name} (${length})</option>`)
}

function card({ slug, upstream, endpoints }: Api, state: ApiState | undefined): Html {
  if (!state) return html``
  const words = [
    slug,
    upstream.displayName,
    upstream.category,
    upstream.description,
    ...upstream.tags,
    ...endpoints.keys(),
  ]
  return html`<li class="card api" data-words="${words.join(' ').toLowerCase()}" data-category="${upstream.category}">
<p class="row"><span class="kicker">${upstream.category}</span>${healthBadge(state)}</p>
<h3><a href="/apis/${slug}">${upstream.displayName}</a></h3>
<p>${upstream.description}</p>
<p class="paths">${[...endpoints.keys()].map((path) => html`<code>${path}</code> `)}</p>
<p class="terms"><span>${planBadge(state)}</span> ${upstream.terms.summary}</p>
</li>`
}
