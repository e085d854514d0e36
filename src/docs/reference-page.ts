import type { ParameterSchema } from '../catalog/api-endpoint.ts'
import { type DataField, dataFields } from '../catalog/data-fields.ts'
import { boundWords, parameterWords } from '../catalog/parameter-words.ts'
import { ERRORS } from '../errors.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import { codeBlock, withCode } from '../portal/pages/parts.ts'
import { accountOperations, type OpenApi, type Operation } from './operations.ts'

/**
 * The reference of all routes that are not endpoints of APIs. Each has a form that sends it with
 * the visitor's session.
 */
export function referencePage(document: OpenApi, baseUrl: string): Html {
  const byTag = Map.groupBy(accountOperations(document), ({ tag }) => tag)
  const groups = document.tags.filter(({ name }) => byTag.has(name))
  return html`<h1>Reference</h1>
<p class="lead">Routes of accounts, keys, teams and calls. The endpoints of the APIs are on <a href="/">the pages of the APIs</a>.</p>
<p>Base address <code>${baseUrl}</code>. Everything is also in <a href="/openapi.json">OpenAPI 3.1</a>.</p>
<nav class="chips" aria-label="Groups">${groups.map(({ name }) => html`<a class="chip" href="#${anchor(name)}">${name}</a>`)}</nav>
<div data-view="reference">${groups.map(
    ({ name, description }) => html`<section aria-labelledby="${anchor(name)}">
<h2 id="${anchor(name)}">${name}</h2>
${description ? html`<p>${description}</p>` : ''}
${byTag.get(name)?.map((operation) => operationCard(operation, baseUrl))}
</section>`,
  )}</div>`
}

function operationCard(operation: Operation, baseUrl: string): Html {
  const { id, method, path, summary, description, credential, parameters, body, responses } = operation
  return html`<details class="card operation" id="${id}">
<summary><span class="verb">${method}</span> <code>${breakable(path)}</code> <span class="summary">${summary}</span></summary>
${description ? html`<p>${withCode(description)}</p>` : ''}
<p class="small">${credential}</p>
${fieldTable('Parameters', parameters)}
${body ? html`<h3>Body${body.required ? '' : ' (optional)'}</h3>${bodyTable(id, body)}` : ''}
<h3>Request</h3>
${codeBlock(curlOf(operation, baseUrl), `request of ${id}`)}
${responses.filter(({ status }) => status.startsWith('2')).map((response) => successPart(operation, response))}
<h3>Statuses</h3>
<dl class="codes">${responses.map(({ status, description: words }) => html`<div><dt>${status}</dt><dd>${linked(words)}</dd></div>`)}</dl>
${tryForm(operation)}
</details>`
}

/** Every media type of a successful answer, with an example. */
function successPart({ id, path }: Operation, { status, media }: Operation['responses'][number]): Html {
  if (media.length === 0) return html`<h3>Response ${status}</h3><p>No body.</p>`
  return html`${media.map(({ type, schema, example }) => {
    const label = `${status} of ${id} as ${type}`
    return html`<h3>Response ${status} <code>${type}</code></h3>
${memberTable(`Response ${label}`, dataFields(schema, example))}
${example === undefined ? html`<p>${documentWords(path)}</p>` : html`<p class="small">An example:</p>${codeBlock(asText(example), `Example of response ${label}`)}`}`
  })}`
}

/**
 * For an answer that is a whole document with a fixed address, a link to the document replaces the
 * example.
 */
function documentWords(path: string): Html {
  return path.includes('{') ? html`A document.` : html`A document: <a href="${path}">${path}</a>`
}

function asText(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example, null, 2)
}

function fieldTable(label: string, parameters: Operation['parameters']): Html {
  if (parameters.length === 0) return html``
  return html`<h3>${label}</h3><div class="scroll" tabindex="0" role="region" aria-label="${label}"><table><tbody>${parameters.map(
    ({ name, place, required, schema, description }) =>
      html`<tr><th scope="row"><code>${name}</code> ${required ? html`<span class="must">required</span> ` : ''}<span class="type">${place}</span></th><td>${parameterWords(schema as ParameterSchema)}${description ? html`<br>${withCode(description)}` : ''}</td></tr>`,
  )}</tbody></table></div>`
}

/** The members of a body: whether they are required, their bounds and their defaults. */
function bodyTable(id: string, { schema, example }: NonNullable<Operation['body']>): Html {
  const bounds = boundWords(schema as ParameterSchema)
  return html`${bounds && html`<p class="small">${bounds}</p>`}${memberTable(`Body of ${id}`, dataFields(schema, example), { isBody: true })}`
}

function memberTable(label: string, fields: DataField[], { isBody = false } = {}): Html {
  if (fields.length === 0) return html``
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table class="response"><tbody>${fields.map(
    ({ name, depth, type, bounds, isRequired, fallback, meaning }) =>
      html`<tr><th scope="row" class="d${Math.min(depth, 5)}"><code>${name}</code>${isBody && isRequired ? html` <span class="must">required</span>` : ''} <span class="type">${[type, bounds].filter(Boolean).join(', ')}</span></th><td>${withCode(meaning)}${fallback && html` Default: <code>${fallback}</code>`}</td></tr>`,
  )}</tbody></table></div>`
}

function curlOf({ method, path, credential, parameters, body }: Operation, baseUrl: string): string {
  // Parameters with an example are part of the address, so that the line can be pasted.
  const address = parameters.reduce(
    (rest, { name, example }) => (example === undefined ? rest : rest.replace(`{${name}}`, String(example))),
    path,
  )
  const header =
    credential === 'No credential'
      ? []
      : [credential.startsWith('API key') ? "-H 'X-Api-Key: YOUR_API_KEY'" : "-H 'Authorization: Bearer YOUR_TOKEN'"]
  const data =
    body?.example === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(body.example).replaceAll("'", "'\\''")}'`]
  return [`curl${method === 'GET' ? '' : ` -X ${method}`} '${baseUrl}${address}'`, ...header, ...data].join(' \\\n  ')
}

/** A form that sends the request with the visitor's session. */
function tryForm({ id, method, path, parameters, body }: Operation): Html {
  if (!path.startsWith('/v1/')) return html``
  const inAddress = parameters.filter(({ place }) => place !== 'header')
  const fields = inAddress.map(
    ({ name, required }) =>
      html`<div class="field"><label for="${id}-${name}">${name}${required ? html` <span class="must">required</span>` : ''}</label><input id="${id}-${name}" name="${name}" autocomplete="off"></div>`,
  )
  const area = body
    ? html`<div class="field"><label for="${id}-body">Body</label><textarea id="${id}-body" name="body" rows="5" spellcheck="false" data-json>${body.example === undefined ? '' : JSON.stringify(body.example, null, 2)}</textarea></div>`
    : ''
  return html`<form class="try-route" data-route data-method="${method}" data-path="${path}">
<h3>Try it</h3>
${fields}${area}
<div class="actions"><button class="button" type="submit">Send</button><span class="small" role="status" data-outcome>Runs with your session. Changes are real.</span></div>
<pre class="answer" tabindex="0" aria-label="Answer of ${id}" data-answer hidden><code></code></pre>
</form>`
}

/** Turns codes in the text into links to their descriptions. */
function linked(words: string): Html {
  const parts = words.split(/\b([A-Z_]+)\b/)
  return html`${parts.map((part) => (Object.hasOwn(ERRORS, part) ? html`<a href="/docs/errors#${part}"><code>${part}</code></a>` : part))}`
}

/** A path may break after a slash. */
const breakable = (path: string): Html =>
  html`${path.split('/').map((part, index) => (index === 0 ? '' : html`/${trusted('<wbr>')}${part}`))}`

const anchor = (name: string): string => `group-${name.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`
