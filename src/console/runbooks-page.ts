import { readFileSync } from 'node:fs'
import { markdownToHtml } from '../docs/markdown-to-html.ts'
import type { Assets } from '../http/assets.ts'
import { html } from '../http/html.ts'
import { consolePage, consoleStyles } from './console-page.ts'

/** What each alert and each line under "Needs attention" means, and what to do. */
export function runbooksPage(assets: Assets): string {
  const markdown = readFileSync(new URL('../docs/operators/runbooks.md', import.meta.url), 'utf8')
  const titles = [...markdown.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title)
  const main = html`<article class="text" id="runbooks" tabindex="-1">
${markdownToHtml(markdown.replace(/^## /m, `${contents(titles)}\n\n## `))}
</article>
`
  return consolePage(assets, {
    title: 'Runbooks · Agent API Gateway console',
    path: '/runbooks',
    skipTo: ['runbooks', 'Skip to the runbooks'],
    styles: ['browser/base.css', ...consoleStyles('frame', 'tables', 'text')],
    main,
  })
}

/** A list of links to all sections. */
function contents(titles: string[]): string {
  return titles.map((title) => `[${title}](#${title.toLowerCase().replaceAll(' ', '-')})`).join(' · ')
}
