import { Marked } from 'marked'
import { escapeHtml } from '../browser/html.js'
import { type Html, html, trusted } from '../pages/html.ts'
import { codeBlock } from '../portal/pages/parts.ts'

const marked = new Marked({
  renderer: {
    // A block of code with scrolling and a copy button, as everywhere in the portal.
    code: ({ text, lang }) => codeBlock(text, lang ? `${lang} example` : 'example').text,
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    image: ({ href, text }) =>
      `<a class="picture" href="${escapeHtml(href)}"><img src="${escapeHtml(href)}" alt="${escapeHtml(text)}"></a>`,
    table({ header, rows }) {
      const heads = header.map(({ text }) => escapeHtml(text.replaceAll('`', '')))
      const head = header.map(({ tokens }) => `<th scope="col">${this.parser.parseInline(tokens)}</th>`).join('')
      const cell = ({ tokens }: (typeof header)[number], index: number) =>
        `<td${index === 0 ? '' : ` data-label="${heads[index]}"`}>${this.parser.parseInline(tokens)}</td>`
      const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('')
      return `<div class="scroll" tabindex="0" role="region" aria-label="${heads.join(', ')}"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>\n`
    },
  },
})

/**
 * Turns our own Markdown into HTML. Do not use it for other people's text, because raw HTML is
 * passed through.
 */
export function markdownToHtml(markdown: string): Html {
  return html`${trusted(marked.parse(markdown, { async: false }))}`
}

/** The id of a heading. It keeps `_` like GitHub, because the same links lead to both. */
export const anchorOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_]+/gu, '-')
    .replace(/^-|-$/g, '')
