import { type Html, html } from '../../http/html.ts'
import { mcpConfiguration } from '../assets/snippets.js'
import { codeBlock } from './parts.ts'

/** How an agent uses the gateway: one address and a key. */
export function agentsPage(baseUrl: string): Html {
  return html`<div class="wrap prose">
<h1>For agents</h1>
<p class="lead">An agent needs one address and a key. It finds the API itself, reads the parameters, calls, and mends its call from the hint when something is wrong.</p>
<h2>MCP server of all APIs</h2>
<p>Three tools: <code>search_apis</code>, <code>describe_api</code>, <code>call_api</code>. Streamable HTTP, no session.</p>
${codeBlock(mcpConfiguration(baseUrl), 'MCP configuration')}
<h2>MCP server of one API</h2>
<p>One typed tool per endpoint, with input and output schemas.</p>
${codeBlock(mcpConfiguration(baseUrl, 'weather'), 'MCP configuration of weather')}
<h2>Without MCP</h2>
<ul>
<li><a href="/llms.txt">/llms.txt</a>: the catalog in plain text, with a Markdown page per API</li>
<li><a href="/openapi.json">/openapi.json</a>: every route and endpoint with typed parameters and data, for generated clients</li>
<li><a href="/docs/errors.md">/docs/errors.md</a>: every error code and what to do</li>
</ul>
<h2>Errors that can be acted on</h2>
<p>A failure has a <code>code</code> to match on and a <code>hint</code>: one sentence and machine tokens.</p>
${codeBlock(
  JSON.stringify(
    {
      status: 'error',
      error: {
        code: 'INVALID_PARAMETER',
        message: 'Parameter latitude is invalid: it must be a number from -90 to 90.',
        hint: 'Correct the parameter. param=latitude',
        docs: `${baseUrl}/docs/errors#INVALID_PARAMETER`,
      },
    },
    null,
    2,
  ),
  'error',
)}
<p>With a test key, the header <code>X-Gateway-Scenario</code> makes a call fail on purpose: <code>upstream-500</code>, <code>timeout</code>, <code>rate-limited</code>, <code>invalid</code>, <code>slow-2000</code>.</p>
</div>`
}
