/**
 * Whether an answer means that a session has ended: the console's session (401), or the session of
 * a proxy in front of it, which refuses (401, 403) or redirects to a log-in. Reloading the page
 * then shows a log-in. Send the request with `redirect: 'manual'`.
 */
export function wantsLogin({ type, status }) {
  return type === 'opaqueredirect' || status === 401 || status === 403
}

const RELOADED = 'reloaded'

/**
 * Reloads the page, but only once until the console sends news (`noteNews`), because a page that is
 * always refused would otherwise reload for ever. False if it has already reloaded.
 */
export function reloadOnce() {
  if (sessionStorage.getItem(RELOADED) !== null) return false
  sessionStorage.setItem(RELOADED, '')
  location.reload()
  return true
}

/** A snapshot or page of the console has arrived, so the next end of a session may reload again. */
export function noteNews() {
  sessionStorage.removeItem(RELOADED)
}
