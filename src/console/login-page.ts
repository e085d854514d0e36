import { createHash } from 'node:crypto'

const STYLE = `
:root{color-scheme:light dark;--bg:light-dark(#f6f7f9,#0f1216);--card:light-dark(#fff,#171b21);--text:light-dark(#1b2128,#e6eaf0);--dim:light-dark(#5a6573,#9aa6b5);--line:light-dark(#d9dee5,#2a313b);--accent:light-dark(#1d5fd1,#6ea8ff);--on-accent:light-dark(#fff,#0b1220);--bad:light-dark(#b3261e,#ff8a80)}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--bg);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{width:min(24rem,100%);padding:2rem;border:1px solid var(--line);border-radius:14px;background:var(--card)}
h1{margin:0 0 .25rem;font-size:1.25rem}
p{margin:0 0 1.25rem;color:var(--dim)}
.bad{color:var(--bad)}
label{display:block;margin-bottom:.35rem;font-weight:600}
input{width:100%;padding:.6rem .75rem;border:1px solid var(--line);border-radius:8px;background:var(--bg);color:inherit;font:inherit}
button{width:100%;margin-top:1rem;padding:.65rem;border:0;border-radius:8px;background:var(--accent);color:var(--on-accent);font:inherit;font-weight:600;cursor:pointer}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
`

const styleHash = createHash('sha256').update(STYLE).digest('base64')

/** Nothing but the page's own style, and a form that goes nowhere else. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

/** The log-in form; `problem` is why the last try failed. */
export function loginPage(problem?: string): string {
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
${problem === undefined ? '' : `<p class="bad" role="alert">${problem}</p>`}
<label for="token">Operator token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button>
</form>
</main>
</body>
</html>
`
}
