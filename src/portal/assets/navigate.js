import { fieldsOf } from './dom.js'

/**
 * Goes from page to page without losing what is in memory (the visitor's key): the next page is
 * fetched and its main part put in place. Every page is also a plain address, and anything unusual
 * is left to the browser.
 */
let start = () => undefined

/** Paths of the portal's own pages; everything else is left to the browser. */
const isPage = (path) => /^\/($|apis\/|agents$|signup$|login$|account(\/|$)|docs($|\/))/.test(path)

export function startNavigation(startPage) {
  start = startPage
  // Where a page was scrolled to is kept with its place in the history: the browser would restore
  // it too early.
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
  // A search is an address like a link.
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
    // A jump within the page: the browser shows the right page already.
    if (location.pathname + location.search === shownPage) return scrollTo(0, state?.scrollY ?? scrollY)
    if (await load(location.href)) scrollTo(0, state?.scrollY ?? 0)
  })
}

/** How many pages were requested: the last of them is shown. */
let loads = 0

let shownPage = location.pathname + location.search
let scrollTimer

function keepScroll() {
  history.replaceState({ ...history.state, scrollY }, '')
}

/** Browsers allow few changes of the history a second. */
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

/**
 * Shows a page; a page that is new to the history stands there before its script reads the address.
 */
async function load(address, { isNew = false } = {}) {
  document.documentElement.classList.add('loading')
  loads += 1
  const load = loads
  const next = await fetchPage(address)
  // The visitor has gone on to another page meanwhile.
  if (load !== loads) return false
  document.documentElement.classList.remove('loading')
  // Not a page, or one of another version of the portal: the browser does it all anew.
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
