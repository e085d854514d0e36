import { PLACEHOLDER } from './snippets.js'

/**
 * The key with which the visitor tries calls. It exists only in this module's memory, so a reload
 * forgets it.
 */
let current = ''
/**
 * Whether code shows the key in full. A key that was made in this tab is shown; a key that was
 * typed into a field is not.
 */
let isShown = false
const listeners = new Set()

/** Under this name the tab stores the beginning and the end of the key, which are not secret. */
const MASK_NAME = 'key-mask'

export const currentKey = () => current

/**
 * Uses a key from now on.
 *
 * @param made whether the key was just made, so that the visitor sees it in full
 */
export function useKey(key, made = false) {
  const isSame = key.trim() === current
  current = key.trim()
  isShown = made || (isSame && isShown)
  if (current !== '') sessionStorage.setItem(MASK_NAME, maskOf(current))
  for (const listener of listeners) listener(current)
}

/** Shows the key in code in full, or only its beginning and end. */
export function showKey(shown) {
  isShown = shown
  for (const listener of listeners) listener(current)
}

/** Whether code has the whole key in it. */
export const isKeyShown = () => isShown && current !== ''

/** The text for the key in code. The visible text is also what is copied. */
export function keyInCode() {
  if (isKeyShown()) return current
  return current === '' ? (sessionStorage.getItem(MASK_NAME) ?? PLACEHOLDER) : maskOf(current)
}

export const forgetKey = () => {
  sessionStorage.removeItem(MASK_NAME)
  useKey('')
}

const maskOf = (key) => `${/^agw_(live|test)_/.exec(key)?.[0] ?? ''}…${key.slice(-4)}`

/** Calls the listener on every change, until its element has left the page. */
export function onKey(element, listener) {
  const guarded = (key) => (element.isConnected ? listener(key) : listeners.delete(guarded))
  listeners.add(guarded)
}
