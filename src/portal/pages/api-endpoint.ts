import type { ApiEndpoint, ApiParameter, ParameterSchema } from '../../catalog/api-endpoint.ts'
import type { Api } from '../../catalog/catalog.ts'
import { type DataField, dataFields } from '../../catalog/data-fields.ts'
import { endpointErrors } from '../../catalog/endpoint-errors.ts'
import { cacheWords, effectWords } from '../../catalog/limit-words.ts'
import { aliasWords, optionsOf, parameterWords } from '../../catalog/parameter-words.ts'
import { ERRORS } from '../../errors.ts'
import { type Html, html } from '../../pages/html.ts'
import { snippets } from '../assets/snippets.js'
import { codeTabs, withCode } from './parts.ts'

/**
 * An endpoint in two columns: parameters and response on one side, code and answer on the other.
 */
export function endpointSection({
  api,
  endpoint: apiEndpoint,
  index,
  baseUrl,
}: {
  api: Api
  endpoint: ApiEndpoint
  index: number
  baseUrl: string
}): Html {
  const { slug } = api
  const { path, method, declaration: endpoint, parameters } = apiEndpoint
  const id = `e${index}`
  const example = endpoint.example.parameters as Record<string, unknown>
  const recorded = JSON.stringify({ status: 'success', data: endpoint.example.data }, null, 2)
  return html`<section class="endpoint" aria-labelledby="${id}">
<h2 id="${id}"><span class="verb">${method}</span> <code>/v1/call/${slug}${path}</code></h2>
<p>${endpoint.description} <span class="small">${[effectWords(apiEndpoint), cacheWords(apiEndpoint)].filter(Boolean).join(' ')}</span></p>
<div class="split try">
<form class="card" data-try data-slug="${slug}" data-path="${path}"${method === 'POST' ? html` data-method="POST"` : ''} data-base="${baseUrl}">
<h3>Parameters</h3>
${parameters.length === 0 ? html`<p class="small">None.</p>` : parameters.map((parameter) => field(`${id}-${parameter.name}`, parameter, example[parameter.name]))}
<div class="actions"><button class="button" type="submit">Send</button></div>
<div role="status"><span class="small" data-outcome></span><div class="hint" id="${id}-hint" data-hint hidden></div></div>
</form>
<div class="beside">${codeTabs(id, snippets({ baseUrl, slug, path, method, parameters: example }))}
<div class="answer-head"><h3>Answer</h3><span class="badge recorded" data-mode>${EXAMPLE_WORDS[endpoint.example.origin ?? 'recorded']}</span></div>
<pre class="answer" tabindex="0" aria-label="Answer of ${path}" data-answer><code>${recorded}</code></pre>
<div class="call-details" data-details></div>
</div>
<div>${responseTable(path, dataFields(endpoint.data, endpoint.example.data))}
${errorList(api, apiEndpoint)}</div>
</div>
</section>`
}

const EXAMPLE_WORDS = {
  recorded: 'Recorded example',
  document: 'Example of the API’s document',
  made: 'Made example',
}

function field(id: string, { name, aliases, schema, required, isBody }: ApiParameter, value: unknown): Html {
  const options = isBody ? undefined : optionsOf(schema)
  const label = html`<label for="${id}"><code>${name}</code>${required ? html` <span class="must">required</span>` : ''} <span class="type">${parameterWords(schema)}</span></label>`
  const words = [schema.description, aliasWords(aliases)].filter(Boolean).join('. ')
  const help = words ? html`<p class="small" id="${id}-help">${withCode(words)}</p>` : ''
  const described = words ? html` aria-describedby="${id}-help"` : ''
  if (options) {
    // The script reads from it that the choices are numbers.
    const mode = options.every((option) => typeof option === 'number') ? html` inputmode="decimal"` : ''
    return html`<div class="field">${label}${help}<select id="${id}" name="${name}"${mode}${described}>${required ? '' : html`<option value=""></option>`}${options.map(
      (option) => html`<option${option === value ? html` selected` : ''}>${String(option)}</option>`,
    )}</select></div>`
  }
  if (isBody) {
    const text = value === undefined ? '' : JSON.stringify(value, null, 2)
    return html`<div class="field">${label}${help}<textarea id="${id}" name="${name}" rows="8" data-json spellcheck="false"${described}>${text}</textarea></div>`
  }
  return html`<div class="field">${label}${help}${input(id, { name, schema, described }, value)}</div>`
}

/**
 * The browser does not check the value, so that visitors see the gateway's answer to an invalid
 * value.
 */
function input(
  id: string,
  { name, schema, described }: { name: string; schema: ParameterSchema; described: Html | string },
  value: unknown,
): Html {
  const isNumber = schema.type === 'number' || schema.type === 'integer'
  const placeholder = schema.default === undefined ? '' : String(schema.default)
  return html`<input id="${id}" name="${name}" type="text"${isNumber ? html` inputmode="decimal"` : ''}${described} autocomplete="off" placeholder="${placeholder}" value="${value === undefined ? '' : [value].flat().join(',')}"${schema.items ? html` data-list` : ''}>`
}

/** If a response has more members than this, members below its second level are folded. */
const UNFOLDED_MAX = 20

/** Members of `data`: name, type, meaning and an example; nested members are indented. */
function responseTable(path: string, fields: DataField[]): Html {
  const canFold = fields.length > UNFOLDED_MAX
  if (fields.length === 0) return html`<p class="small">The answer has no described field.</p>`
  return html`<h3>Response: fields of <code>data</code></h3>
<div class="scroll" tabindex="0" role="region" aria-label="Response of ${path}"><table class="response"><thead><tr><th scope="col">Name and type</th><th scope="col">Meaning and example</th></tr></thead><tbody>${memberRows(fields, canFold)}</tbody></table></div>`
}

function memberRows(fields: DataField[], canFold: boolean): Html[] {
  const rows: Html[] = []
  for (let index = 0; index < fields.length; ) {
    const field = fields[index]
    if (!field) break
    rows.push(memberRow(field))
    const end = fields.findIndex(({ depth }, at) => at > index && depth <= field.depth)
    const members = fields.slice(index + 1, end < 0 ? undefined : end)
    if (canFold && field.depth > 0 && members.length > 0) {
      rows.push(foldedRow(field, members))
      index += members.length
    }
    index += 1
  }
  return rows
}

function memberRow({ name, depth, type, meaning, example }: DataField): Html {
  return html`<tr><th scope="row" class="d${Math.min(depth, 5)}"><code>${name}</code> <span class="type">${type}</span></th><td>${withCode(meaning)} ${example ? html`<code class="value">${example}</code>` : ''}</td></tr>`
}

/** The nested members of a member, in a table that opens in place. */
function foldedRow({ name, depth }: DataField, members: DataField[]): Html {
  const count = members.filter((member) => member.depth === depth + 1).length
  return html`<tr class="fold"><td colspan="2" class="d${Math.min(depth, 5)}"><details><summary>${count} ${count === 1 ? 'field' : 'fields'} of <code>${name}</code></summary><table class="response" aria-label="Fields of ${name}"><tbody>${members.map(memberRow)}</tbody></table></details></td></tr>`
}

function errorList(api: Api, endpoint: ApiEndpoint): Html {
  return html`<details><summary>Errors of this endpoint</summary><dl class="codes">${endpointErrors(api, endpoint).map(
    (code) =>
      html`<div><dt>${ERRORS[code].status} <a href="/docs/errors#${code}"><code>${code}</code></a></dt><dd>${ERRORS[code].message}</dd></div>`,
  )}</dl></details>`
}
