import { ERRORS, type ErrorCode, GatewayError } from '../errors.ts'
import { errorBody } from '../http/answer/error-answer.ts'
import { STATUS_CODES } from '../node-http.ts'
import { CALL_CODES } from '../openapi/error-responses.ts'
import { type Html, html } from '../pages/html.ts'
import { codeBlock } from '../portal/pages/parts.ts'
import { ERROR_HELP } from './error-causes.ts'

/**
 * Every error code with its status, causes, fix and an example body. Each has an anchor, to which
 * `docs` in errors leads.
 */
export function errorPage(baseUrl: string): Html {
  const groups = Map.groupBy(Object.keys(ERRORS) as ErrorCode[], (code) => ERRORS[code].status)
  const statuses = [...groups].sort(([a], [b]) => a - b)
  return html`<h1>Errors</h1>
<p class="lead">Every failure is JSON with a <code>code</code>, a <code>message</code>, a <code>hint</code> that names the next action, and a link to its place on this page. Match on the code, never on the text.</p>
<p><strong>502</strong>: the source failed. <strong>503</strong>: the gateway could not serve you. Hints end in machine tokens such as <code>retry_after=7</code>, <code>param=id</code> or <code>upgrade_to=pro</code>. <a href="/docs/errors.md">As Markdown</a></p>
<div data-view="errors">
<div class="field"><label for="find">Find a code</label><input id="find" type="search" autocomplete="off" placeholder="429, KEY, timeout" data-find></div>
<p class="small" role="status" data-count></p>
<nav class="chips" aria-label="Statuses">${statuses.map(([status]) => html`<a class="chip" href="#status-${status}">${status}</a>`)}</nav>
${statuses.map(
  ([status, codes]) => html`<section data-status>
<h2 id="status-${status}">${status} ${STATUS_CODES[status]}</h2>
${codes.map((code) => card(code, baseUrl))}
</section>`,
)}
</div>`
}

function card(code: ErrorCode, baseUrl: string): Html {
  const { message, retryable, status } = ERRORS[code]
  const { causes, fix } = ERROR_HELP[code]
  const body = errorBody(new GatewayError(code), baseUrl, CALL_CODES.includes(code))
  return html`<article class="card error-code" id="${code}" data-words="${`${status} ${code} ${message}`.toLowerCase()}">
<h3><a href="#${code}"><code>${code}</code></a></h3>
<p>${message}</p>
<dl>
<div><dt>Causes</dt><dd>${causes.length === 1 ? causes[0] : html`<ul>${causes.map((cause) => html`<li>${cause}</li>`)}</ul>`}</dd></div>
<div><dt>Fix</dt><dd>${fix}</dd></div>
<div><dt>Retry?</dt><dd>${retryable ? 'Yes, after Retry-After if the answer has it.' : 'No: first do what the fix says.'}</dd></div>
</dl>
<details><summary>Example body</summary>${codeBlock(JSON.stringify(body, null, 2), `Body of ${code}`)}</details>
</article>`
}
