import type { Api, ApiEndpoint, ParameterSchema } from '../../catalog/catalog.ts'
import { parameterWords } from '../../catalog/parameter-words.ts'
import { type Html, html } from '../../http/html.ts'
import { snippets } from '../assets/snippets.js'
import type { ApiState } from '../catalog-view.ts'
import { codeTabs, healthBadge, planBadge } from './parts.ts'

/** One API: terms, and each endpoint with its parameters, a form to try it, snippets and a recorded answer. */
export function apiPage(api: Api, state: ApiState, baseUrl: string): Html {
  const { upstream, slug } = api
  const { terms } = upstream
  return html`<div class="wrap" data-view="api">
<p class="crumbs"><a href="/">APIs</a> / ${upstream.displayName}</p>
<div class="split top-split">
<div>
<h1>${upstream.displayName}</h1>
<p class="lead">${upstream.description}</p>
<p class="badges">${healthBadge(state)} ${planBadge(state)} <span class="badge">${upstream.category}</span></p>
<p class="small"><a href="/docs/apis/${slug}.md">As Markdown</a> · <a href="/openapi.json">OpenAPI</a> · MCP server <code>${baseUrl}/mcp/${slug}</code></p>
</div>
<aside class="card" aria-labelledby="terms-title">
<h2 id="terms-title" class="h3">Terms of the source</h2>
<p>${terms.summary}</p>
${terms.attribution ? html`<p>Show: <q>${terms.attribution}</q></p>` : ''}
${terms.url ? html`<p><a href="${terms.url}" rel="noreferrer noopener">Read the terms</a></p>` : ''}
</aside>
</div>
${api.enabled ? '' : html`<p class="notice">${api.needsOwnKey ? html`Live calls need a key of your own: <a href="/account/provider-keys">save one</a>.` : 'The operator has not enabled this API.'} Test keys work all the same.</p>`}
<section class="card keybar" aria-labelledby="key-title">
<h2 id="key-title" class="h3">Your key</h2>
<div class="field grow"><label for="api-key">API key</label><input id="api-key" type="password" autocomplete="off" spellcheck="false" placeholder="agw_test_… or agw_live_…" data-key></div>
<button type="button" class="button quiet" data-make-key>Make a test key</button>
<p class="small">Kept in this tab’s memory alone: a reload forgets it. A test key is answered from recorded examples, whatever the parameters.</p>
</section>
${[...api.endpoints.values()].map((endpoint, index) => endpointSection(api, endpoint, index, baseUrl))}
</div>`
}

function endpointSection(
  { slug }: Api,
  { path, endpoint, parameters }: ApiEndpoint,
  index: number,
  baseUrl: string,
): Html {
  const id = `e${index}`
  const example = endpoint.example.parameters as Record<string, string | number | boolean>
  return html`<section class="endpoint" aria-labelledby="${id}">
<h2 id="${id}"><span class="verb">GET</span> <code>/v1/call/${slug}${path}</code></h2>
<p>${endpoint.description}</p>
${
  parameters.length === 0
    ? html`<p class="small">No parameters.</p>`
    : html`<div class="scroll" tabindex="0" role="region" aria-label="Parameters of ${path}"><table><thead><tr><th scope="col">Parameter</th><th scope="col">Value</th><th scope="col">Meaning</th></tr></thead><tbody>${parameters.map(
        ({ name, schema, required }) =>
          html`<tr><td><code>${name}</code>${required ? html` <span class="must">required</span>` : ''}</td><td>${parameterWords(schema)}</td><td>${schema.description}</td></tr>`,
      )}</tbody></table></div>`
}
<div class="split try">
<form class="card" data-try data-slug="${slug}" data-path="${path}" data-base="${baseUrl}">
<h3>Try it</h3>
${parameters.map(({ name, schema, required }) => field(`${id}-${name}`, name, schema, required, example[name]))}
<div class="actions"><button class="button" type="submit">Send</button><span class="small" role="status" data-outcome></span></div>
<pre class="answer" tabindex="0" aria-label="Answer" data-answer hidden><code></code></pre>
<p class="small hint" data-hint hidden></p>
</form>
<div>${codeTabs(id, snippets({ baseUrl, slug, path, parameters: example }))}
<details><summary>A recorded answer</summary><pre class="answer" tabindex="0" aria-label="Recorded answer of ${path}"><code>${JSON.stringify({ status: 'success', data: endpoint.example.data }, null, 2)}</code></pre></details>
</div>
</div>
</section>`
}

function field(id: string, name: string, schema: ParameterSchema, required: boolean, value: unknown): Html {
  const options = schema.enum ?? schema.anyOf?.map((option) => option.const)
  const label = html`<label for="${id}">${name}${required ? html` <span class="must">required</span>` : ''}</label>`
  if (options) {
    return html`<div class="field">${label}<select id="${id}" name="${name}">${required ? '' : html`<option value=""></option>`}${options.map(
      (option) => html`<option${option === value ? html` selected` : ''}>${String(option)}</option>`,
    )}</select></div>`
  }
  const isNumber = schema.type === 'number' || schema.type === 'integer'
  const placeholder = schema.default === undefined ? '' : String(schema.default)
  // Not restricted by the browser: an invalid value shows what the gateway says to it.
  return html`<div class="field">${label}<input id="${id}" name="${name}" type="text"${isNumber ? html` inputmode="decimal"` : ''} autocomplete="off" placeholder="${placeholder}" value="${value === undefined ? '' : String(value)}"></div>`
}
