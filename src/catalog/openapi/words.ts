/**
 * Puts a text of a document on one line, without control characters, and cuts it at a length.
 * People and models read it.
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

/**
 * Adds a full stop if the text has no punctuation at its end, because other sentences follow it.
 */
export const asSentence = (text: string): string => text.replace(/(?<=[\p{L}\p{N})"'`])$/u, '.')

/**
 * Turns `listOrders`, `list_orders` and `List orders` into `list-orders`, and `créer` into `creer`.
 */
export function kebab(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/([a-z\d])([A-Z])/g, '$1-$2')
    .replace(/(?<=[A-Z])(?=[A-Z][a-z])/g, '-')
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '-')
    .replace(/^-|-$/g, '')
}
