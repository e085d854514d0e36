import { type Html, html } from '../pages/html.ts'
import { cell } from './api-markdown.ts'
import { excerptOf, type Place } from './search.ts'

/** Longest query, characters. */
export const QUERY_LENGTH_MAX = 200

/** The search form of the documentation. It works without scripts. */
export function searchForm(query = ''): Html {
  return html`<form class="docs-search" role="search" aria-label="Documentation" method="get" action="/docs/search#found" data-visit>
<label for="docs-q">Search the documentation</label>
<div class="row"><input id="docs-q" name="q" type="search" maxlength="${QUERY_LENGTH_MAX}" value="${query}" autocomplete="off" placeholder="rotate a key, 429" aria-keyshortcuts="/"><button class="button quiet" type="submit">Search</button></div>
</form>`
}

/** The results of a search as a page. */
export function searchPage(query: string, found: Place[]): Html {
  return html`<h1 id="found">Search</h1>
<p role="status">${countWords(query, found)}</p>
<ol class="found">${found.map(
    ({ kind, title, context, address, text }) =>
      html`<li><a href="${address}">${title}</a> <span class="badge">${kind}</span>${context && html` <span class="small">${context}</span>`}<br><span class="small">${excerptOf(text, query)}</span></li>`,
  )}</ol>
<p class="small"><a href="/docs">All guides, APIs and routes</a> · <a href="/docs/search.md?${new URLSearchParams({ q: query }).toString()}">This search as Markdown</a></p>`
}

/** The results of a search in Markdown. */
export function searchMarkdown(query: string, found: Place[], baseUrl: string): string {
  const lines = found.map(
    ({ kind, title, context, address, text }) =>
      `- ${kind}: [${cell(title)}](${baseUrl}${address})${context && ` (${cell(context)})`}: ${cell(excerptOf(text, query))}`,
  )
  return ['# Search', '', countWords(query, found), '', ...lines, ''].join('\n')
}

function countWords(query: string, found: Place[]): string {
  if (found.length > 0) return found.length === 1 ? 'One place.' : `${found.length} places, the best first.`
  if (query.trim() === '') return 'Type what you look for: a task, an error code, a route, a parameter.'
  return 'Nothing fits. Try other words, such as the name of a route or an error code.'
}
