/** Search and filters over the cards that the page came with. */
export function startCatalog(view) {
  const form = view.querySelector('[data-filters]')
  const cards = [...view.querySelectorAll('[data-cards] > li')]
  const count = view.querySelector('[data-count]')
  const empty = view.querySelector('[data-empty]')
  const filter = () => {
    const { q, category, health } = Object.fromEntries(new FormData(form))
    const words = q.toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    for (const card of cards) {
      const fits =
        words.every((word) => card.dataset.words.includes(word)) &&
        (category === '' || card.dataset.category === category) &&
        (health === '' || card.querySelector('.health').textContent.startsWith(health))
      card.hidden = !fits
      if (fits) shown += 1
    }
    count.textContent = shown === cards.length ? '' : `${shown} of ${cards.length} APIs`
    empty.hidden = shown > 0
  }
  form.addEventListener('input', filter)
  form.addEventListener('submit', (event) => event.preventDefault())
  view.querySelector('[data-clear]').addEventListener('click', () => {
    form.reset()
    filter()
    form.elements.q.focus()
  })
  filter()
}
