import { STATUS_CODES } from 'node:http'
import { ERRORS } from '../errors.ts'
import { type Html, html } from '../http/html.ts'

/** Every error code with its status, when it comes and what to do; an anchor for each, which `docs` in errors names. */
export function errorPage(): Html {
  const groups = Map.groupBy(Object.entries(ERRORS), ([, { status }]) => status)
  const statuses = [...groups].sort(([a], [b]) => a - b)
  return html`<div class="wrap prose">
<h1>Errors</h1>
<p class="lead">Every failure is JSON with a <code>code</code>, a <code>message</code>, a <code>hint</code> that names the next action, and a link to its place on this page. Match on the code, never on the text.</p>
<p><strong>502</strong> is because of the upstream API, <strong>503</strong> because of the gateway. Hints end in machine tokens such as <code>retry_after=7</code>, <code>param=id</code> or <code>upgrade_to=pro</code>. <a href="/docs/errors.md">As Markdown</a></p>
<nav class="chips" aria-label="Statuses">${statuses.map(([status]) => html`<a class="chip" href="#status-${status}">${status}</a>`)}</nav>
${statuses.map(
  ([status, entries]) => html`<section>
<h2 id="status-${status}">${status} ${STATUS_CODES[status]}</h2>
<div class="stack">${entries.map(
    ([code, { message, hint, retryable }]) => html`<article class="card error-code" id="${code}">
<h3><a href="#${code}"><code>${code}</code></a></h3>
<dl><div><dt>When</dt><dd>${message}</dd></div><div><dt>What to do</dt><dd>${hint}.</dd></div><div><dt>Again later</dt><dd>${
      retryable ? 'The same request may succeed later.' : 'The same request will fail again.'
    }</dd></div></dl>
</article>`,
  )}</div>
</section>`,
)}
</div>`
}
