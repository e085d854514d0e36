/** Tabs of a browser share a session: if one tab begins or ends the session, this holds in all. */
const tabs = new BroadcastChannel('session')

/** Tells the other tabs that the visitor has logged in or out. */
export function announceSession() {
  tabs.postMessage('changed')
}

/**
 * Reloads the account pages of other tabs. Otherwise they would show one account and act on
 * another.
 */
export function followSession() {
  tabs.addEventListener('message', () => {
    if (/^\/account(\/|$)/.test(location.pathname)) location.reload()
  })
}
