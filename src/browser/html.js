/**
 * A text as the content of an element or of a quoted attribute: whatever it holds, it stays text
 * (HTML Standard, 13.3).
 *
 * @param {unknown} text
 */
export function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
