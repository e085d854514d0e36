import { type Html, html } from '../../pages/html.ts'
import { clientSetups } from '../assets/snippets.js'
import { codeBlock, codeTabs } from './parts.ts'

/** How agents use the gateway: one address and a key. */
export function agentsPage({ baseUrl, isOauthOn }: { baseUrl: string; isOauthOn: boolean }): Html {
  return html`<div class="wrap prose">
<h1>For agents</h1>
<p class="lead">An agent needs one address and a key. It finds the API itself, reads the parameters, calls, and corrects its call by the hint if something is wrong.</p>
<h2>Set up your client</h2>
<p>${isOauthOn ? html`With an <a href="/account/keys">API key</a>, or without one by signing in: clients that know OAuth ask you in the browser.` : html`You need an <a href="/account/keys">API key</a>.`} A key that you made or pasted in this tab is inserted when you copy.</p>
${codeTabs('client', clientSetups(`${baseUrl}/mcp`))}
<p class="small">Claude Code: in a terminal. Cursor: <code>~/.cursor/mcp.json</code>. VS Code: <code>.vscode/mcp.json</code>. Codex: <code>~/.codex/config.toml</code>.</p>
<p>${hostedClients({ baseUrl, isOauthOn })}</p>
<h2>Which address</h2>
<ul>
<li><code>${baseUrl}/mcp</code>: four tools for all APIs, <code>search_apis</code>, <code>describe_api</code>, <code>call_api</code> and <code>call_apis</code> for up to 20 calls at once</li>
<li><code>${baseUrl}/mcp?apis=weather,currency</code>: one typed tool per endpoint of the APIs you name</li>
<li><code>${baseUrl}/mcp/weather</code>: one typed tool per endpoint of one API</li>
</ul>
<p>Streamable HTTP, no session. With a test key, every result says that its data are recorded.</p>
<h2>Without MCP</h2>
<ul>
<li><a href="/llms.txt">/llms.txt</a>: the catalog and the guides in plain text, with a Markdown page per API</li>
<li><a href="/openapi.json">/openapi.json</a>: every route and endpoint with typed parameters and data, for generated clients</li>
<li><a href="/client.ts">/client.ts</a>, <a href="/client.py">/client.py</a>: typed clients in one file; <a href="/postman.json">/postman.json</a>: a collection</li>
<li><a href="/docs/errors.md">/docs/errors.md</a>: every error code with causes and fix</li>
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

/**
 * Notes for clients that run elsewhere. They accept no key and cannot reach an address of the
 * visitor's machine.
 */
function hostedClients({ baseUrl, isOauthOn }: { baseUrl: string; isOauthOn: boolean }): Html {
  const name = 'Claude.ai, ChatGPT and other hosted clients'
  if (!isOauthOn) return html`${name} sign in only by OAuth, which is switched off on this gateway.`
  if (!baseUrl.startsWith('https:'))
    return html`${name} sign in by OAuth, but reach only public <code>https:</code> addresses, and the address of this gateway is <code>${baseUrl}</code>.`
  return html`${name}: add a custom connector with the address <code>${baseUrl}/mcp</code> and sign in.`
}
