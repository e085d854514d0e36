/**
 * A text of a document as one line without control characters, cut at a length. It is shown to
 * people and to models.
 */
export function shortened(text: string, charactersMax: number): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  if (line.length <= charactersMax) return line
  const cut = line.slice(0, charactersMax - 1)
  const blank = cut.lastIndexOf(' ')
  return `${(blank > charactersMax * 0.6 ? cut.slice(0, blank) : cut).toWellFormed()}…`
}

/** With a full stop if it has no end: other sentences follow it. */
export const asSentence = (text: string): string => text.replace(/(?<=[\p{L}\p{N})"'`])$/u, '.')

/** `listOrders`, `list_orders` and `List orders` as `list-orders`. */
export function kebab(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/([a-z\d])([A-Z])/g, '$1-$2')
    .replace(/(?<=[A-Z])(?=[A-Z][a-z])/g, '-')
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '-')
    .replace(/^-|-$/g, '')
}
