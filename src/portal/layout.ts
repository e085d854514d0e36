import type { SignupPolicy } from '../config.ts'
import type { Assets } from '../pages/assets.ts'
import { type Html, html } from '../pages/html.ts'
import { pageHead } from '../pages/page-head.ts'

export interface Page {
  title: string
  description: string
  /** Path of the page, to mark its link in the navigation. */
  path: string
  main: Html
  /** Who may sign up. If sign-up is closed, the header does not offer it. */
  signup: SignupPolicy
  /** A message for every visitor; empty if there is none. */
  notice?: string
  /** The notice of the operator. */
  announcement: string | undefined
  /** Additional elements in the head of the page. */
  head?: Html
  /** Whether the visitor seems to be logged in. It only affects the links in the header. */
  isLoggedIn?: boolean
}

const LINKS = [
  ['/', 'APIs'],
  ['/agents', 'For agents'],
  ['/docs', 'Docs'],
] as const

/** In this order: a later style sheet overrides an earlier style sheet. */
const STYLES = [
  'browser/uplot.css',
  'browser/base.css',
  ...['frame', 'controls', 'data', 'pages', 'api', 'account', 'docs'].map((name) => `portal/assets/${name}.css`),
]

/**
 * Whether a page belongs to a link of the header: the page of an API belongs to the catalog, a
 * guide to the docs.
 */
function isWithin(path: string, href: string): boolean {
  if (href === '/') return path === '/' || path.startsWith('/apis/')
  return path === href || path.startsWith(`${href}/`)
}

/** A page of the portal: head, header, main, footer. */
export function layout(
  assets: Assets,
  { title, description, path, main, signup, notice = '', announcement, isLoggedIn = false, head }: Page,
): string {
  const link = ([href, name]: readonly [string, string]) =>
    html`<a href="${href}"${isWithin(path, href) ? html` aria-current="page"` : ''}>${name}</a>`
  const more = html`<meta name="description" content="${description}">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">
<meta property="og:type" content="website">
<link rel="icon" type="image/svg+xml" href="${assets.href('portal/assets/icon.svg')}">${head ?? ''}`
  return html`<!doctype html>
<html lang="en">
${pageHead(assets, { title, styles: STYLES, script: 'portal/assets/app.js', more })}
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top">
<div class="wrap">
<a class="brand" href="/"><img src="${assets.href('portal/assets/icon.svg')}" width="28" height="28" alt=""> Agent API Gateway</a>
<nav aria-label="Main">${LINKS.map(link)}</nav>
<div class="who">${
    isLoggedIn
      ? html`<a class="button quiet" href="/account">Account</a>`
      : html`<a class="button quiet" href="/login">Log in</a>${signup === 'closed' ? '' : html`<a class="button" href="/signup">Sign up</a>`}`
  }</div>
</div>
</header>
<main id="main" tabindex="-1">${notice && html`<div class="wrap"><p class="failure" role="status">${notice}</p></div>`}${announcement === undefined ? '' : html`<div class="wrap"><p class="notice" role="status">${announcement}</p></div>`}${main}</main>
<footer class="bottom">
<div class="wrap">
<p>Agent API Gateway: one key, one response format, predictable waits.</p>
<p><a href="/openapi.json">OpenAPI 3.1</a> <a href="/llms.txt">llms.txt</a> <a href="/docs">Docs</a> <a href="/docs/errors">Errors</a></p>
</div>
</footer>
<div id="toast" role="status" aria-live="polite"></div>
</body>
</html>
`.text
}
