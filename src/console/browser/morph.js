import { Idiomorph } from '../../browser/idiomorph.js'

/**
 * Changes the content of an element to the given HTML but keeps existing nodes, and with them the
 * focus, selected text and open details. Moved nodes are recognised by their ids.
 *
 * @param {Element} element
 * @param {string} html
 */
export function morphInto(element, html) {
  Idiomorph.morph(element, html, {
    morphStyle: 'innerHTML',
    callbacks: { beforeAttributeUpdated: (name) => name !== 'open' },
  })
}
