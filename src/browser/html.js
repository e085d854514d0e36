/**
 * Escapes a text for the content of an element or for a quoted attribute (HTML Standard, 13.3).
 *
 * @param {unknown} text
 */
export function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
