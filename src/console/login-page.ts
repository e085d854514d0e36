import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { escapeHtml } from '../browser/html.js'

/** Inline: the console's files are behind the log-in. */
const STYLE = `${readFileSync(new URL('../browser/base.css', import.meta.url), 'utf8')}
body{min-height:100vh;display:grid;place-items:center;padding:1rem}
main{width:min(24rem,100%);padding:2rem;border:1px solid var(--line);border-radius:var(--radius);background:var(--card)}
h1{margin:0 0 .25rem;font-size:1.25rem}
p{margin:0 0 1.25rem;color:var(--soft)}
.bad{color:var(--bad)}
label{display:block;margin:.9rem 0 .35rem;font-weight:600}
input{width:100%;padding:.6rem .75rem;border:1px solid var(--edge);border-radius:8px;background:var(--page);color:inherit;font:inherit}
button{width:100%;margin-top:1rem;padding:.65rem;border:0;border-radius:8px;background:var(--accent);color:var(--on-accent);font:inherit;font-weight:600;cursor:pointer}
`

const styleHash = createHash('sha256').update(STYLE).digest('base64')

/** Nothing but the page's own style, and a form that goes nowhere else. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

/** The log-in form; `next` is the page to show afterwards, `name` who logged in here before, `problem` why the last try failed. */
export function loginPage({
  next = '/',
  name = '',
  problem,
}: {
  next?: string
  name?: string
  problem?: string
} = {}): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · Agent API Gateway console</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Agent API Gateway</h1>
<p>Operator console</p>
<form method="post" action="/login">
<input type="hidden" name="next" value="${escapeHtml(next)}">
${problem === undefined ? '' : `<p class="bad" role="alert">${problem}</p>`}
<label for="token">Operator token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<label for="name">Your name, for the audit log</label>
<input id="name" name="name" type="text" maxlength="64" autocomplete="username" value="${escapeHtml(name)}">
<button type="submit">Log in</button>
</form>
</main>
</body>
</html>
`
}
