import { toast } from './dom.js'
import { isKeyShown, keyInCode, onKey } from './key.js'
import { PLACEHOLDER } from './snippets.js'

/** The original code with its placeholder, by element. */
const templates = new WeakMap()

/** Shows code in an element, with the visitor's key in place of the placeholder. */
export function showCode(element, code) {
  templates.set(element, code)
  element.textContent = code.replaceAll(PLACEHOLDER, keyInCode())
}

/** Updates the key in all code of a page when it changes. */
export function startCodes(root) {
  for (const element of root.querySelectorAll('pre code')) {
    if (!element.textContent.includes(PLACEHOLDER)) continue
    showCode(element, element.textContent)
    onKey(element, () => showCode(element, templates.get(element)))
  }
}

/** Copies the code beside a button as it is shown. */
export async function copyCode(button) {
  const code = button.parentElement.querySelector('code')
  const hasKey = templates.get(code)?.includes(PLACEHOLDER)
  await copyText(code.textContent, hasKey ? copiedWords() : 'Copied')
}

function copiedWords() {
  return isKeyShown() ? 'Copied, with your key in it' : `Copied: put your key in place of ${keyInCode()}`
}

export async function copyText(text, word = 'Copied') {
  try {
    await navigator.clipboard.writeText(text)
    toast(word)
  } catch {
    toast('The browser blocked the copy. Select the text and copy it')
  }
}

/** Tabs after the ARIA pattern: arrow keys move, and the panel follows. */
export function startTabs(group) {
  const tabs = [...group.querySelectorAll('[role=tab]')]
  const show = (tab) => {
    for (const other of tabs) {
      const isShown = other === tab
      other.setAttribute('aria-selected', String(isShown))
      other.tabIndex = isShown ? 0 : -1
      document.getElementById(other.getAttribute('aria-controls')).hidden = !isShown
    }
  }
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener('click', () => show(tab))
    tab.addEventListener('keydown', ({ key }) => {
      const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
      if (step === 0) return
      const next = tabs[(index + step + tabs.length) % tabs.length]
      show(next)
      next.focus()
    })
  }
}
