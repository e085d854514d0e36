import type { Assets } from '../http/assets.ts'
import { type Html, html } from '../http/html.ts'

export interface ConsolePage {
  title: string
  /** Path of the link of the header to which the page belongs. */
  path: '/' | '/queues'
  /** Id of what a keyboard skips the header for, and the words of that link. */
  skipTo: [id: string, text: string]
  /** In this order: later ones refine earlier ones. */
  styles: string[]
  script: string
  main: Html
  /** What lies over the page. */
  outside?: Html
}

const LINKS = [
  ['/', 'Overview'],
  ['/queues', 'Queues'],
  ['/metrics', 'Metrics'],
] as const

/** Style sheets of the console by name. */
export function consoleStyles(...names: string[]): string[] {
  return names.map((name) => `console/browser/${name}.css`)
}

/** A page of the console: head, header, main. Its script keeps it as things are and says so beside the name. */
export function consolePage(
  assets: Assets,
  { title, path, skipTo: [skipTo, skipText], styles, script, main, outside = html`` }: ConsolePage,
): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
${styles.map(
  (name) => html`<link rel="stylesheet" href="${assets.href(name)}">
`,
)}<script type="module" src="${assets.href(script)}"></script>
</head>
<body>
<a class="skip" href="#${skipTo}">${skipText}</a>
<header>
<div class="brand"><strong>Agent API Gateway</strong><span id="live" class="live" role="status">connecting</span></div>
<nav aria-label="Console">${LINKS.map(
    ([href, name]) => html`<a href="${href}"${href === path ? html` aria-current="page"` : ''}>${name}</a>`,
  )}
<form method="post" action="/logout"><button type="submit" class="quiet">Log out</button></form></nav>
</header>
<main>
${main}</main>
${outside}
</body>
</html>
`.text
}
