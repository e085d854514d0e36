/**
 * Whether an answer does not come from the console: its own session has ended (401), or the session
 * of a proxy before it, which refuses (401, 403) or redirects to a log-in. A whole page load then
 * shows a log-in. Ask with `redirect: 'manual'`.
 */
export function wantsLogin({ type, status }) {
  return type === 'opaqueredirect' || status === 401 || status === 403
}

const RELOADED = 'reloaded'

/**
 * Reloads the page, once until there was news: else a page that is always refused would reload for
 * ever. False: it had been.
 */
export function reloadOnce() {
  if (sessionStorage.getItem(RELOADED) !== null) return false
  sessionStorage.setItem(RELOADED, '')
  location.reload()
  return true
}

/** The page that was requested has arrived. */
export function noteNews() {
  sessionStorage.removeItem(RELOADED)
}
