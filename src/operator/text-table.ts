const GAP = '  '

/** Least width of a column that is cut, characters. */
const COLUMN_MIN = 10

/** Longest line of running text, characters. */
const TEXT_WIDTH_MAX = 100

export interface TableOptions {
  /**
   * Headings of columns that are never cut, because commands need their values or because half a
   * value is useless.
   */
  whole: string[]
  /**
   * Default: the width of the terminal. If the output is not a terminal, or its width is unknown
   * (0), nothing is cut.
   */
  widthMax?: number
}

/** A table of plain text. If it is wider than the terminal, its widest columns are cut. */
export function textTable(
  heads: string[],
  rows: string[][],
  { whole, widthMax = process.stdout.columns || Number.POSITIVE_INFINITY }: TableOptions,
): string {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => (row[column] ?? '').length)))
  const total = () => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1))
  const widthToCut = (column: number) => (whole.includes(heads[column] ?? '') ? 0 : (widths[column] ?? 0))
  while (total() > widthMax) {
    const widest = heads.map((_, column) => column).reduce((a, b) => (widthToCut(b) > widthToCut(a) ? b : a), 0)
    const width = widthToCut(widest)
    if (width <= COLUMN_MIN) break
    widths[widest] = Math.max(COLUMN_MIN, width - (total() - widthMax), Math.floor(width * 0.9) - 1)
  }
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd()
  return [line(heads.map((head) => head.toUpperCase())), ...rows.map(line)].join('\n')
}

/** Running text, wrapped into lines. */
export function wrapped(text: string, indent = ''): string {
  const lines: string[] = []
  let line = indent
  for (const word of text.split(' ')) {
    const isEmpty = line.trim() === ''
    if (!isEmpty && line.length + 1 + word.length > TEXT_WIDTH_MAX) {
      lines.push(line)
      line = `${indent}${word}`
    } else line = isEmpty ? `${indent}${word}` : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}

/**
 * Characters to remove. Some of the text comes from callers, and a control character would change
 * the terminal or the order of the text.
 */
const CONTROL = /[\p{Cc}\p{Bidi_Control}]/gu

function cut(text: string, width: number): string {
  const plain = text.replace(CONTROL, '?')
  return plain.length <= width ? plain : `${plain.slice(0, Math.max(0, width - 1))}…`
}
