import { escapeHtml } from '../../browser/html.js'

const MARKS = {
  Healthy: '●',
  Degraded: '▲',
  Limited: '◆',
  Down: '✕',
  Disabled: '○',
  Paused: '‖',
  Unknown: '?',
  Unchecked: '○',
  Over: '✓',
}

/** A state as a coloured label, with a mark for people who cannot see the colour. */
export function pill(state, text = state) {
  return `<span class="pill ${escapeHtml(state.toLowerCase())}"><span aria-hidden="true">${MARKS[state] ?? ''}</span> ${escapeHtml(text)}</span>`
}

/** A table whose cells name their column on narrow screens. Headings and cells are HTML. */
export function table(label, heads, rows) {
  const head = heads.map((text) => `<th scope="col">${text}</th>`).join('')
  const body = rows.map(([first = '', ...cells]) => {
    const rest = cells.map((cell, index) => `<td data-label="${heads[index + 1] ?? ''}">${cell}</td>`).join('')
    return `<tr><th scope="row">${first}</th>${rest}</tr>`
  })
  return `<table aria-label="${label}"><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table>`
}
