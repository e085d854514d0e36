import { Idiomorph } from '../../browser/idiomorph.js'

/**
 * Makes the content of an element what the HTML says and keeps the nodes that stay: the focus, text
 * that somebody marks, and details that are open. Nodes that move are known again by their ids.
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
