import type { Assets } from './assets.ts'
import { type Html, html } from './html.ts'

export interface PageHead {
  title: string
  /** Names of assets, in this order: a later style sheet overrides an earlier style sheet. */
  styles: readonly string[]
  /** Absent on a page that does not change. */
  script?: string
  /** Further elements, such as the icon. */
  more: Html
}

/** The `head` of a page whose style sheets and script are assets. */
export function pageHead(assets: Assets, { title, styles, script, more }: PageHead): Html {
  return html`<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${more}
${styles.map(
  (name) => html`<link rel="stylesheet" href="${assets.href(name)}">
`,
)}${script === undefined ? '' : html`<script type="module" src="${assets.href(script)}"></script>`}
</head>`
}
