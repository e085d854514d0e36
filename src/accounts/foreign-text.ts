/** Longest text of a stranger that is kept and shown, characters. */
const CHARACTERS_MAX = 60

/** Control characters, and characters that break a line. */
const BREAKS = /[\p{Cc}\p{Zl}\p{Zp}]/gu

/**
 * Characters that show nothing, or that reorder others: bidirectional marks, joiners, fillers,
 * unassigned characters.
 */
const HIDDEN = /[\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** More than two marks on a character run into the lines above and below. */
const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu

/**
 * Shortens a stranger's text to one line and removes characters that hide, reorder or overlay other
 * characters. Empty if nothing visible is left. Callers apply it when they store a text and again
 * when they show it, because older rows hold the text as it arrived.
 */
export function oneLine(text: string, charactersMax = CHARACTERS_MAX): string {
  const plain = text.normalize('NFC').replace(BREAKS, ' ').replace(HIDDEN, '').replace(STACKED_MARKS, '$1')
  const characters = [...plain.replace(/\s+/g, ' ').trim()]
  if (characters.length <= charactersMax) return characters.join('')
  return `${characters
    .slice(0, charactersMax - 1)
    .join('')
    .trim()}…`
}
