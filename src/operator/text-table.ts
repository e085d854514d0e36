/** Widest line, characters: a terminal of usual width shows it without wrapping. */
const WIDTH_MAX = 100

const GAP = '  '

/** A column is not cut further than this, characters: a date is whole. */
const COLUMN_MIN = 10

/**
 * Rows as a table of plain text, at most 100 columns wide where that can be: the widest columns are cut where it would be
 * wider.
 *
 * @param whole heads of the columns that are never cut, because commands take what stands in them
 */
export function textTable(heads: string[], rows: string[][], whole: string[]): string {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => (row[column] ?? '').length)))
  const total = () => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  const widthToCut = (column: number) => (whole.includes(heads[column] ?? '') ? 0 : (widths[column] ?? 0))
  while (total() > WIDTH_MAX) {
    const widest = heads.map((_, column) => column).reduce((a, b) => (widthToCut(b) > widthToCut(a) ? b : a), 0)
    const width = widthToCut(widest)
    if (width <= COLUMN_MIN) break
    widths[widest] = Math.max(COLUMN_MIN, width - (total() - WIDTH_MAX), Math.floor(width * 0.9) - 1)
  }
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd()
  return [line(heads.map((head) => head.toUpperCase())), ...rows.map(line)].join('\n')
}

/** Lines of text, each at most as wide as a table. */
export function wrapped(text: string, indent = ''): string {
  const lines: string[] = []
  let line = indent
  for (const word of text.split(' ')) {
    const isEmpty = line.trim() === ''
    if (!isEmpty && line.length + 1 + word.length > WIDTH_MAX) {
      lines.push(line)
      line = `${indent}${word}`
    } else line = isEmpty ? `${indent}${word}` : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}

/** Callers write some of what is shown: a control character would change the terminal or the order of the text. */
const CONTROL = /[\p{Cc}\p{Bidi_Control}]/gu

function cut(text: string, width: number): string {
  const plain = text.replace(CONTROL, '?')
  return plain.length <= width ? plain : `${plain.slice(0, Math.max(0, width - 1))}…`
}
