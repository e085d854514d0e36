/**
 * Goes from page to page without losing what is in memory (the visitor's key): the next page is fetched and its main
 * part put in place. Every page is also a plain address, and anything unusual is left to the browser.
 */
let start = () => undefined

/** Paths of the portal's own pages; everything else is left to the browser. */
const isPage = (path) => /^\/($|apis\/|agents$|signup$|login$|account(\/|$)|docs\/errors$)/.test(path)

export function startNavigation(startPage) {
  start = startPage
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]')
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !isPlain || event.defaultPrevented || link.target || link.origin !== location.origin) return
    if (!isPage(link.pathname) || (link.pathname === location.pathname && link.hash !== '')) return
    event.preventDefault()
    visit(link.href)
  })
  addEventListener('popstate', () => load(location.href))
}

/** Shows another page of the portal. */
export async function visit(address) {
  const url = new URL(address, location.href)
  if (await load(url)) history.pushState(null, '', url)
  const target = url.hash === '' ? undefined : document.getElementById(url.hash.slice(1))
  if (target) target.scrollIntoView()
  else scrollTo(0, 0)
}

const script = (page) => page.querySelector('script[src]')?.getAttribute('src')

async function load(address) {
  const next = await fetchPage(address)
  // Not a page, or one of another version of the portal: the browser does it all anew.
  if (!next || script(next) !== script(document)) {
    location.assign(address)
    return false
  }
  document.title = next.title
  for (const part of ['main', '.top'])
    document.querySelector(part).replaceWith(document.adoptNode(next.querySelector(part)))
  document.querySelector('main').focus({ preventScroll: true })
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
