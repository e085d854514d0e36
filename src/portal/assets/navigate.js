import { fieldsOf } from './dom.js'

/**
 * Changes pages without losing what is in memory (the visitor's key): it fetches the next page and
 * replaces the main part. Every page also has a normal address, and the browser handles everything
 * unusual.
 */
let start = () => undefined

/** Paths of the portal's own pages. The browser handles all other links. */
const isPage = (path) => /^\/($|apis\/|agents$|signup$|login$|account(\/|$)|docs($|\/))/.test(path)

export function startNavigation(startPage) {
  start = startPage
  // The scroll position is stored with the history entry, because the browser would restore it too
  // early.
  history.scrollRestoration = 'manual'
  scrollTo(0, history.state?.scrollY ?? scrollY)
  addEventListener('pagehide', keepScroll)
  document.addEventListener('click', (event) => {
    /** @type {HTMLAnchorElement | null} */
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !isPlain || event.defaultPrevented || link.target || link.origin !== location.origin) return
    if (!isPage(link.pathname) || link.pathname.endsWith('.md')) return
    if (link.pathname === location.pathname && link.hash !== '' && link.search === location.search) return
    event.preventDefault()
    visit(link.href)
  })
  // A search form is handled like a link to its address.
  document.addEventListener('submit', (event) => {
    const form = event.target
    if (event.defaultPrevented || !(form instanceof HTMLFormElement) || !form.matches('[data-visit]')) return
    event.preventDefault()
    const address = new URL(form.action)
    address.search = new URLSearchParams(fieldsOf(form)).toString()
    visit(address)
  })
  addEventListener('scroll', keepScrollSoon, { passive: true })
  addEventListener('popstate', async ({ state }) => {
    clearTimeout(scrollTimer)
    // A jump within the page: the browser already shows the right page.
    if (location.pathname + location.search === shownPage) return scrollTo(0, state?.scrollY ?? scrollY)
    if (await load(location.href)) scrollTo(0, state?.scrollY ?? 0)
  })
}

/** Number of pages requested so far. Only the latest request is shown. */
let loads = 0

let shownPage = location.pathname + location.search
let scrollTimer

function keepScroll() {
  history.replaceState({ ...history.state, scrollY }, '')
}

/** Browsers allow few changes of the history per second. */
function keepScrollSoon() {
  clearTimeout(scrollTimer)
  scrollTimer = setTimeout(keepScroll, 200)
}

/** Shows another page of the portal. */
export async function visit(address) {
  const url = new URL(address, location.href)
  clearTimeout(scrollTimer)
  keepScroll()
  if (!(await load(url, { isNew: true }))) return
  const target = url.hash === '' ? undefined : document.getElementById(url.hash.slice(1))
  if (target) target.scrollIntoView()
  else scrollTo(0, 0)
}

const script = (page) => page.querySelector('script[src]')?.getAttribute('src')

/** Shows a page. A new history entry is added before the page's script reads the address. */
async function load(address, { isNew = false } = {}) {
  document.documentElement.classList.add('loading')
  loads += 1
  const load = loads
  const next = await fetchPage(address)
  // The visitor has requested another page meanwhile.
  if (load !== loads) return false
  document.documentElement.classList.remove('loading')
  // It is not a page, or it belongs to another version of the portal, so the browser loads it
  // normally.
  if (!next || script(next) !== script(document)) {
    location.assign(address)
    return false
  }
  if (isNew) history.pushState(null, '', address)
  document.title = next.title
  for (const part of ['main', '.top'])
    document.querySelector(part).replaceWith(document.adoptNode(next.querySelector(part)))
  document.querySelector('main').focus({ preventScroll: true })
  shownPage = location.pathname + location.search
  start()
  return true
}

async function fetchPage(address) {
  try {
    const response = await fetch(address, { headers: { accept: 'text/html' } })
    if (!response.ok) return undefined
    return new DOMParser().parseFromString(await response.text(), 'text/html')
  } catch {
    return undefined
  }
}
