import { request } from './api.js'
import { fieldsOf } from './dom.js'

/** Pause after the last key press before the search is sent, milliseconds. */
const PAUSE_MS = 150

/** Search and filters for the cards of the page. The address holds the chosen values. */
export function startCatalog(view) {
  const form = view.querySelector('[data-filters]')
  const list = view.querySelector('[data-cards]')
  const cards = new Map([...list.children].map((card) => [card.dataset.slug, card]))
  // The catalog's own order, even if the page was rendered for a search.
  const all = [...cards.keys()].sort()
  let found = all
  let timer
  let latest = 0

  const show = () => {
    const { q, category, health } = Object.fromEntries(fieldsOf(form))
    let shown = 0
    for (const [slug, card] of cards) {
      const fits =
        found.includes(slug) &&
        (category === '' || card.dataset.category === category) &&
        (health === '' || card.dataset.health === health)
      card.hidden = !fits
      if (fits) shown += 1
    }
    list.append(...found.map((slug) => cards.get(slug)).filter(Boolean))
    view.querySelector('[data-count]').textContent = shown === cards.size ? '' : `${shown} of ${cards.size} APIs`
    view.querySelector('[data-empty]').hidden = shown > 0
    view.querySelector('[data-empty-text]').textContent =
      q.trim() === '' ? 'No API matches.' : `No API matches “${q.trim()}”.`
  }

  const remember = () => {
    const filled = fieldsOf(form).filter(([, value]) => value.trim() !== '')
    const query = new URLSearchParams(filled).toString()
    history.replaceState(history.state, '', query === '' ? '/' : `/?${query}`)
  }

  /**
   * The gateway ranks the results. If an older ranking arrives after a newer ranking, it is
   * ignored.
   */
  const search = async () => {
    latest += 1
    const mine = latest
    const q = form.elements.q.value.trim()
    const answer =
      q === '' ? undefined : await request(`/v1/catalog?${new URLSearchParams({ q })}`).catch(() => undefined)
    if (mine !== latest || !view.isConnected) return
    found = answer?.data?.data?.map((entry) => entry.api_name) ?? all
    show()
  }

  form.addEventListener('input', ({ target }) => {
    remember()
    if (target !== form.elements.q) return show()
    clearTimeout(timer)
    timer = setTimeout(search, PAUSE_MS)
  })
  form.addEventListener('submit', (event) => event.preventDefault())
  view.querySelector('[data-clear]').addEventListener('click', (event) => {
    event.preventDefault()
    for (const control of form.elements) if (control.name) control.value = ''
    remember()
    search()
    form.elements.q.focus()
  })
  // The server has rendered the page for the search in its address, so the order of the cards is
  // the ranking.
  if (form.elements.q.value.trim() !== '') found = [...list.children].map((card) => card.dataset.slug)
  if (form.elements.q.value.trim() !== '') search()
}
