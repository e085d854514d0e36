import type { Api } from '../../catalog/catalog.ts'
import { exampleCall, firstExampleCall } from '../../catalog/example-call.ts'
import { rankApis } from '../../catalog/search.ts'
import type { SignupPolicy } from '../../config.ts'
import { type Html, html } from '../../pages/html.ts'
import { PLACEHOLDER } from '../assets/snippets.js'
import type { Visit } from '../catalog-view.ts'
import { CONDITIONS, type Condition } from '../condition.ts'
import { categoryIcon } from './category-icon.ts'
import { capitalized, codeBlock, healthBadge, planBadge } from './parts.ts'

/** The filters of the catalog. The address holds them. */
export interface CatalogFilter {
  q: string
  category: string
  health: string
}

/** An API of the catalog with its state. */
export interface CatalogItem {
  api: Api
  condition: Condition
}

/** The introduction and the whole catalog. Cards that the filter excludes are hidden. */
export function homePage(items: CatalogItem[], filter: CatalogFilter, { baseUrl, isLoggedIn, signup }: Visit): Html {
  const endpoints = items.reduce((sum, { api }) => sum + api.endpoints.size, 0)
  const ranked = rankApis(
    items.map(({ api }) => api),
    filter.q,
  )
  const places = new Map(ranked.map((api, position) => [api, position]))
  const place = (item: CatalogItem) => places.get(item.api) ?? -1
  const fits = (item: CatalogItem) =>
    place(item) >= 0 &&
    (filter.category === '' || item.api.upstream.category === filter.category) &&
    (filter.health === '' || item.condition.word === filter.health)
  const sorted = items.toSorted((a, b) => Number(place(a) < 0) - Number(place(b) < 0) || place(a) - place(b))
  const shown = sorted.filter(fits)
  return html`
<section class="hero">
<div class="wrap split">
<div>
<h1>${items.length} data APIs.<br>One key.</h1>
<p class="lead">Weather, currencies, news, encyclopedia and more behind one HTTP interface, for people and for agents: one response format, errors that say what to do next, and the sources’ limits kept for you.</p>
<p class="actions">${wayToKey({ isLoggedIn, signup })} <a class="button quiet big" href="#catalog">See the catalog</a></p>
<p class="small">Free plan, no card. Test calls are answered from recorded examples at once.</p>
</div>
${demo(items, baseUrl)}
</div>
</section>
<section class="wrap steps" aria-label="How it works">
<ol>
${isLoggedIn ? '' : html`<li><h2>${signup === 'closed' ? 'Get an account' : 'Sign up'}</h2><p>${SIGN_UP[signup]}</p></li>`}
<li><h2>Try an API</h2><p>Press Send on any API’s page, with test data or live data.</p></li>
<li><h2>Call it</h2><p>Make a key and paste the snippet: curl, JavaScript, Python or MCP.</p></li>
</ol>
</section>
<section class="wrap" id="catalog" data-view="catalog" aria-labelledby="catalog-title">
<div class="row"><h2 id="catalog-title">Catalog</h2><p class="small">${items.length} APIs, ${endpoints} endpoints</p></div>
<form class="filters" role="search" data-filters method="get" action="/#catalog">
<div class="field"><label for="q">Search</label><input id="q" name="q" type="search" maxlength="200" value="${filter.q}" placeholder="weather, exchange rates, IP address" autocomplete="off"></div>
<div class="field"><label for="category">Category</label><select id="category" name="category"><option value="">All categories</option>${categories(items, filter.category)}</select></div>
<div class="field"><label for="health">Health</label><select id="health" name="health"><option value="">Any health</option>${CONDITIONS.map((word) => html`<option${word === filter.health ? html` selected` : ''}>${word}</option>`)}</select></div>
<noscript><button class="button" type="submit">Search</button></noscript>
</form>
<p class="small" role="status" data-count>${shown.length === items.length ? '' : `${shown.length} of ${items.length} APIs`}</p>
<ul class="grid" data-cards>${sorted.map((item) => card(item, !fits(item)))}</ul>
<p class="empty" data-empty${shown.length > 0 ? html` hidden` : ''}><span data-empty-text>${emptyText(filter.q)}</span> <a href="/#catalog" data-clear>Show all APIs</a></p>
</section>`
}

function wayToKey({ isLoggedIn, signup }: Pick<Visit, 'isLoggedIn' | 'signup'>): Html {
  if (!isLoggedIn && signup === 'closed') return html`<a class="button big" href="/login?next=/account/keys">Log in</a>`
  return html`<a class="button big" href="${isLoggedIn ? '/account/keys' : '/signup'}">Get a key</a>`
}

const SIGN_UP: Record<SignupPolicy, string> = {
  open: 'An email and a password.',
  verified: 'An email and a password. Live calls work after you open the link in a mail.',
  approval: 'An email and a password. Live calls work after the operator approves the account.',
  closed: 'Sign-up is closed. Ask the operator of this gateway to open it.',
}

const emptyText = (q: string): string => (q === '' ? 'No API matches.' : `No API matches “${q}”.`)

function demo(items: CatalogItem[], baseUrl: string): Html {
  const example = firstExampleCall(items.map(({ api }) => api))
  if (!example) return html``
  const { api, endpoint } = example
  const members = Object.entries(endpoint.declaration.example.data).slice(0, 5)
  const answer = JSON.stringify({ status: 'success', data: Object.fromEntries(members) }, null, 2)
  return html`<div class="demo">
${codeBlock(`curl -H 'X-Api-Key: ${PLACEHOLDER}' \\\n  '${baseUrl}${exampleCall(api.slug, endpoint)}'`, 'call')}
<pre class="answer" tabindex="0" aria-label="Answer"><code>${answer.replace(/\n {2}\}\n\}$/, ',\n    …\n  }\n}')}</code></pre>
</div>`
}

function categories(items: CatalogItem[], chosen: string): Html[] {
  const counts = Map.groupBy(items, ({ api }) => api.upstream.category)
  const sorted = [...counts].sort(([a], [b]) => a.localeCompare(b))
  return sorted.map(
    ([name, { length }]) =>
      html`<option value="${name}"${name === chosen ? html` selected` : ''}>${capitalized(name)} (${length})</option>`,
  )
}

function card({ api, condition }: CatalogItem, isHidden: boolean): Html {
  const { slug, upstream, endpoints } = api
  return html`<li class="card api" data-slug="${slug}" data-category="${upstream.category}" data-health="${condition.word}"${isHidden ? html` hidden` : ''}>
<p class="row"><span class="kicker">${categoryIcon(upstream.category)} ${capitalized(upstream.category)}</span>${healthBadge(condition)}</p>
<h3><a href="/apis/${slug}">${upstream.displayName}</a></h3>
<p>${upstream.description}</p>
<p class="paths">${[...endpoints.keys()].map((path) => html`<code>${path}</code> `)}</p>
<p class="badges terms">${planBadge(api)}${termBadges(upstream.terms).map((word) => html` <span class="badge">${word}</span>`)}</p>
</li>`
}

/** The terms in one or two words. The API's page has them in full. */
function termBadges({ attribution, nonCommercial }: Api['upstream']['terms']): string[] {
  return [...(nonCommercial ? ['Non-commercial'] : []), ...(attribution === undefined ? [] : ['Attribution'])]
}
