/** The key the visitor tries calls with. In this module's memory and nowhere else: a reload forgets it. */
let current = ''
const listeners = new Set()

export const currentKey = () => current

export function useKey(key) {
  current = key.trim()
  for (const listener of listeners) listener(current)
}

/** Calls the listener on every change until its element has left the page. */
export function onKey(element, listener) {
  const guarded = (key) => (element.isConnected ? listener(key) : listeners.delete(guarded))
  listeners.add(guarded)
}
