import type { UpstreamRow } from '../fleet/snapshot.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import { COLUMNS, rowCells } from './browser/rows.js'

/** A table with a line for each API, whose name leads to the page of the API. */
export function apisTable(
  label: string,
  { rows, at, columns }: { rows: UpstreamRow[]; at: number; columns: string[] },
): Html {
  const shown = columns.map((name) => ({ name, ...COLUMNS[name] }))
  const classOf = (look?: string) => look && html` class="${look}"`
  return html`<table class="apis" aria-label="${label}"><thead><tr><th scope="col">API</th>${shown.map(
    ({ head, look }) => html`<th scope="col"${classOf(look)}>${head}</th>`,
  )}</tr></thead>
<tbody>${rows.map((row) => {
    const cells = rowCells(row, at)
    return html`<tr id="${row.slug}"><th scope="row"><a href="/queues/${row.slug}">${row.slug}</a></th>${shown.map(
      ({ name, head, look }) =>
        html`<td data-place="${row.slug} ${name}" data-label="${head}"${classOf(look)}>${trusted(cells[name] ?? '')}</td>`,
    )}</tr>
`
  })}</tbody></table>`
}
