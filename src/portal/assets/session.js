/** The tabs of a browser share its session: what one tab begins or ends holds in all of them. */
const tabs = new BroadcastChannel('session')

/** Says to the other tabs that the visitor has logged in, or is logged out. */
export function announceSession() {
  tabs.postMessage('changed')
}

/**
 * Loads the account pages of other tabs again: they would show one account, and act on another.
 */
export function followSession() {
  tabs.addEventListener('message', () => {
    if (/^\/account(\/|$)/.test(location.pathname)) location.reload()
  })
}
