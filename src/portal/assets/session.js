import { api } from './api.js'
import { forgetKey } from './key.js'

/** Tabs of a browser share a session: if one tab begins or ends the session, this holds in all. */
const tabs = new BroadcastChannel('session')

/** Tells the other tabs that the visitor has logged in or out. */
export function announceSession() {
  tabs.postMessage('changed')
}

/** Signs up or logs in. The session is stored in a cookie that no script can read. */
export async function beginSession(action, { email, password }) {
  await api(`/portal/${action}`, { method: 'POST', body: { email, password } })
  announceSession()
}

/** Logs out, and forgets the key of the account. */
export async function endSession() {
  await api('/portal/logout', { method: 'POST' })
  forgetKey()
  announceSession()
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
