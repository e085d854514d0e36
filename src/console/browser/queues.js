import './actions.js'
import { morphInto } from './morph.js'
import { noteNews, reloadOnce, wantsLogin } from './session-end.js'

/**
 * Keeps a page of queues up to date: it requests the page every two seconds and changes the parts
 * that differ.
 */
const EVERY_MS = 2_000
const TIMEOUT_MS = 5_000

const live = document.getElementById('live')
const filter = /** @type {HTMLInputElement | null} */ (document.getElementById('filter'))
let readAt = new Date()

function setLive(text, isLive) {
  if (live.textContent !== text) live.textContent = text
  live.classList.toggle('on', isLive)
}

async function readPage() {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(location.href, { headers: { accept: 'text/html' }, redirect: 'manual', signal })
  if (wantsLogin(response)) reloadOnce()
  if (!response.ok) throw new Error(`the console answered ${response.status}`)
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  if (page.querySelector('[data-live]')) noteNews()
  else {
    reloadOnce()
    throw new Error('another server answered in place of the console')
  }
  return page
}

/** @returns whether everything was updated. Nothing is changed while somebody selects text. */
function show(page) {
  const parts = page.querySelectorAll('[data-live]')
  let isAll = true
  for (const [index, part] of document.querySelectorAll('[data-live]').entries()) {
    const fresh = parts[index]
    if (!fresh || fresh.innerHTML === part.innerHTML) continue
    if (isMarked(part)) isAll = false
    else morphInto(part, fresh.innerHTML)
  }
  applyFilter()
  return isAll
}

function isMarked(part) {
  const selection = getSelection()
  return !selection.isCollapsed && selection.containsNode(part, true)
}

function applyFilter() {
  const wanted = filter?.value.trim().toLowerCase() ?? ''
  /** @type {NodeListOf<HTMLElement>} */
  const rows = document.querySelectorAll('#calls tbody tr')
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted)
}

async function refresh() {
  if (!document.hidden) {
    try {
      const isAll = show(await readPage())
      readAt = new Date()
      setLive(isAll ? 'live' : 'updates are paused while text is selected', isAll)
    } catch {
      setLive(`no update since ${readAt.toLocaleTimeString()}`, false)
    }
  }
  setTimeout(refresh, EVERY_MS)
}

filter?.addEventListener('input', applyFilter)
document.addEventListener('visibilitychange', () => {
  if (document.hidden) setLive('updates are paused while this page is hidden', false)
})
refresh()
