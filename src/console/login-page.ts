import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { escapeHtml } from '../browser/html.js'
import type { Config } from '../config.ts'

/** Inline, because the console's files are only served after the log-in. */
const STYLE = `${readFileSync(new URL('../browser/base.css', import.meta.url), 'utf8')}
body{min-height:100vh;display:grid;place-items:center;padding:1rem}
main{width:min(24rem,100%);padding:2rem;border:1px solid var(--line);border-radius:var(--radius);background:var(--card)}
h1{margin:0 0 .25rem;font-size:1.25rem}
p{margin:0 0 1.25rem;color:var(--soft)}
.bad{color:var(--bad)}
label{display:block;margin:.9rem 0 .35rem;font-weight:600}
input{width:100%;padding:.6rem .75rem;border:1px solid var(--edge);border-radius:8px;background:var(--page);color:inherit;font:inherit}
button,.button{display:block;text-align:center;text-decoration:none;width:100%;margin-top:1rem;padding:.65rem;border:0;border-radius:8px;background:var(--accent);color:var(--on-accent);font:inherit;font-weight:600;cursor:pointer}
`

const styleHash = createHash('sha256').update(STYLE).digest('base64')

/** Allows only the inline style, and a form that is sent to this origin. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

interface LoginPage {
  access: Config['operatorAccess']
  /** The page to open after the log-in. */
  next?: string
  /** The name of the person who logged in before in this browser. */
  name?: string
  /** Why the last attempt failed. */
  problem?: string
}

/** The ways to log in that are configured. */
export function loginPage({ access, next = '/', name = '', problem }: LoginPage): string {
  const alert = problem === undefined ? '' : `<p class="bad" role="alert">${problem}</p>`
  const provider = access.oidc
    ? `<p><a class="button" href="/login/oidc?next=${escapeHtml(encodeURIComponent(next))}">Sign in with ${escapeHtml(access.oidc.name)}</a></p>`
    : ''
  const form = access.isTokenLoginOn ? tokenForm({ next, name, isOnlyWay: access.oidc === undefined }) : ''
  return page(
    'Log in · Agent API Gateway console',
    `<h1>Agent API Gateway</h1>
<p>Operator console</p>
${alert}
${provider}
${form}`,
  )
}

function tokenForm({ next, name, isOnlyWay }: { next: string; name: string; isOnlyWay: boolean }): string {
  return `<form method="post" action="/login">
<input type="hidden" name="next" value="${escapeHtml(next)}">
<label for="token">Operator token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required${isOnlyWay ? ' autofocus' : ''}>
<label for="name">Your name, for the audit log</label>
<input id="name" name="name" type="text" maxlength="64" autocomplete="username" value="${escapeHtml(name)}">
<button type="submit">Log in</button>
</form>`
}

/**
 * A page that leads a person back to the console after the provider's sign-in. A redirect would
 * count as a navigation from the provider's site, for which browsers do not send the session's
 * cookie.
 */
export function enteringPage(next: string): string {
  const target = escapeHtml(next)
  return page(
    'Agent API Gateway console',
    `<p>You are signed in. <a href="${target}">Open the console</a></p>`,
    `<meta http-equiv="refresh" content="0;url=${target}">`,
  )
}

function page(title: string, main: string, head = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${head}
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`
}
