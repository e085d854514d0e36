/** Finds error codes by status, code or words. */
export function startErrors(view) {
  const input = view.querySelector('[data-find]')
  const cards = [...view.querySelectorAll('.error-code')]
  const count = view.querySelector('[data-count]')
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    for (const card of cards) card.hidden = !words.every((word) => card.dataset.words.includes(word))
    for (const section of view.querySelectorAll('[data-status]')) {
      section.hidden = section.querySelector('.error-code:not([hidden])') === null
    }
    const shown = cards.filter((card) => !card.hidden).length
    count.textContent = words.length === 0 ? '' : `${shown} of ${cards.length} codes`
  })
}
