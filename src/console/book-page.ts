import { readdirSync, readFileSync } from 'node:fs'
import { anchorOf, markdownToHtml } from '../docs/markdown-to-html.ts'
import type { Assets } from '../pages/assets.ts'
import { html } from '../pages/html.ts'
import { consolePage, consoleStyles } from './console-page.ts'

const FOLDER = new URL('../docs/operators/', import.meta.url)

/** The file of the first page. */
const FIRST = 'README'

/**
 * Names of the pages of the operators' book, as in their addresses. The first page, the list of all
 * pages, has no name.
 */
export const BOOK_PAGES = readdirSync(FOLDER).flatMap((file) =>
  file === `${FIRST}.md` ? [] : file.replace(/\.md$/, ''),
)

/**
 * The page of the runbooks: what each alert and each line under "Needs attention" means, and what
 * to do.
 */
const RUNBOOKS = 'runbooks'

/**
 * A page of the operators' book, `src/docs/operators`.
 *
 * @param name one of `BOOK_PAGES`; undefined for the list of all pages
 */
export function bookPage(assets: Assets, name?: string): string {
  const markdown = readFileSync(new URL(`${name ?? FIRST}.md`, FOLDER), 'utf8')
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? ''
  const main = html`<article class="text" id="text" tabindex="-1">
${markdownToHtml(withContents(withAddresses(withPictures(markdown, assets))))}
</article>
<script type="module" src="${assets.href('console/browser/book.js')}"></script>
`
  return consolePage(assets, {
    title: `${title} · Agent API Gateway console`,
    path: '/book',
    skipTo: ['text', 'Skip to the text'],
    styles: ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables', 'text')],
    main,
  })
}

/** The console serves the pictures of the book itself. */
function withPictures(markdown: string, assets: Assets): string {
  return markdown.replaceAll(
    /\]\(\.\.\/(pictures\/[\w-]+\.svg)\)/g,
    (_, path: string) => `](${assets.href(`docs/${path}`)})`,
  )
}

/**
 * Turns links between the files into links between their pages. If a link leads to a file that is
 * not a page of the book, only its text stays.
 */
function withAddresses(markdown: string): string {
  return markdown.replaceAll(/(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)/g, (_, text: string, target: string) => {
    const [file = '', anchor] = target.split('#')
    const page = file.replace(/\.md$/, '')
    if (page !== FIRST && !BOOK_PAGES.includes(page)) return text
    const path = page === FIRST ? '/book' : page === RUNBOOKS ? '/runbooks' : `/book/${page}`
    return `[${text}](${path}${anchor === undefined ? '' : `#${anchor}`})`
  })
}

/** Links to all sections, placed before the first section if a page has several. */
function withContents(markdown: string): string {
  const titles = [...markdown.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title)
  if (titles.length < 4) return markdown
  const links = titles.map((title) => `[${title}](#${anchorOf(title)})`).join(' · ')
  return markdown.replace(/^## /m, `${links}\n\n## `)
}
