import type { Assets } from '../pages/assets.ts'
import { type Html, html } from '../pages/html.ts'
import { pageHead } from '../pages/page-head.ts'

export interface ConsolePage {
  title: string
  /** Path of the link in the header to which the page belongs; undefined for none. */
  path?: '/' | '/queues' | '/calls' | '/accounts' | '/audit' | '/book'
  /**
   * Where the "skip" link leads that lets keyboard users skip the header, and the text of the link.
   */
  skipTo: [id: string, text: string]
  /** In this order: a later style sheet overrides an earlier style sheet. */
  styles: string[]
  /** The script that keeps the page up to date; absent if nothing on it changes. */
  script?: string
  main: Html
  /** Elements above the page, such as dialogs. */
  outside?: Html
}

const LINKS = [
  ['/', 'Overview'],
  ['/queues', 'Queues'],
  ['/calls', 'Calls'],
  ['/accounts', 'Accounts'],
  ['/audit', 'Audit'],
  ['/book', 'Docs'],
] as const

/** Style sheets of the console by name. */
export function consoleStyles(...names: string[]): string[] {
  return names.map((name) => `console/browser/${name}.css`)
}

/**
 * A page of the console: head, header, main. Beside the name, its script shows whether the page is
 * up to date.
 */
export function consolePage(
  assets: Assets,
  { title, path, skipTo: [skipTo, skipText], styles, script, main, outside = html`` }: ConsolePage,
): string {
  return html`<!doctype html>
<html lang="en">
${pageHead(assets, { title, styles, ...(script && { script }), more: html`<link rel="icon" href="data:,">` })}
<body>
<a class="skip" href="#${skipTo}">${skipText}</a>
<header>
<div class="brand"><strong>Agent API Gateway</strong>${script && html`<span id="live" class="live" role="status">connecting</span>`}</div>
<nav aria-label="Console">${LINKS.map(
    ([href, name]) => html`<a href="${href}"${href === path ? html` aria-current="page"` : ''}>${name}</a>`,
  )}
<form role="search" action="/find"><input type="search" name="q" required maxlength="320" placeholder="call, request or account" aria-label="Find a call by its id or by that of its request, or an account by its address" autocomplete="off" spellcheck="false"></form>
<form method="post" action="/logout"><button type="submit" class="quiet">Log out</button></form></nav>
</header>
<main>
${main}</main>
${outside}
</body>
</html>
`.text
}
