import type { Api } from '../catalog/catalog.ts'
import { type Html, html } from '../pages/html.ts'
import type { Guide } from './guides.ts'
import { searchForm } from './search-page.ts'

/** A page of the documentation, with the table of contents beside it. */
export function docsFrame(
  path: string,
  { guides, apis, query = '' }: { guides: Guide[]; apis: Api[]; query?: string },
  main: Html,
): Html {
  const link = (href: string, name: string) =>
    html`<li><a href="${href}"${href === path ? html` aria-current="page"` : ''}>${name}</a></li>`
  return html`<div class="wrap docs">
<nav class="side contents" aria-label="Documentation" tabindex="0">
${searchForm(query)}
<details class="menu"><summary>Contents of the documentation</summary><div class="links">
<ul>${link('/docs', 'Overview')}</ul>
<h2>Guides</h2>
<ul>${guides.map(({ name, title }) => link(`/docs/guides/${name}`, title))}</ul>
<h2>Reference</h2>
<ul>${link('/docs/reference', 'Account routes')}${link('/docs/errors', 'Error codes')}</ul>
<details><summary>APIs (${apis.length})</summary><ul>${apis.map(({ slug, upstream }) => link(`/apis/${slug}`, upstream.displayName))}</ul></details>
</div></details></nav>
<article class="content prose">${main}</article>
</div>`
}

/** The table of contents: guides, APIs, routes of accounts. */
export function docsHome({ guides, apis }: { guides: Guide[]; apis: Api[] }): Html {
  return html`<h1>Documentation</h1>
<p class="lead">One key, one response format, predictable waits. Start with the <a href="/docs/guides/quickstart">quickstart</a>.</p>
<h2>APIs</h2>
<p>Each page has parameters, the fields of the response, limits, errors, code, and a form that sends.</p>
<div class="scroll" tabindex="0" role="region" aria-label="APIs"><table><thead><tr><th scope="col">API</th><th scope="col">Endpoints</th></tr></thead><tbody>${apis.map(
    ({ slug, upstream, endpoints }) =>
      html`<tr><th scope="row"><a href="/apis/${slug}">${upstream.displayName}</a></th><td>${[...endpoints.keys()].map((endpoint, index) => html`<a href="/apis/${slug}#e${index}"><code>${endpoint}</code></a> `)}</td></tr>`,
  )}</tbody></table></div>
<h2>Guides</h2>
<ul class="guide-list">${guides.map(({ name, title, summary }) => html`<li><a href="/docs/guides/${name}">${title}</a><br><span class="small">${summary}</span></li>`)}</ul>
<h2>Reference</h2>
<ul>
<li><a href="/docs/reference">Account routes</a>: sign-up, keys, teams, billing, asynchronous calls</li>
<li><a href="/docs/errors">Error codes</a>: causes, fix and example body of each</li>
<li><a href="/openapi.json">OpenAPI 3.1</a> of everything, for generators and API tools</li>
</ul>`
}
