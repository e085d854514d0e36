import { toast } from './dom.js'
import { currentKey } from './key.js'
import { PLACEHOLDER } from './snippets.js'

/** Copies the code beside a button, with the visitor's own key in it where there is one. */
export async function copyCode(button) {
  const code = button.parentElement.querySelector('code').textContent
  const key = currentKey()
  const isWithKey = key !== '' && code.includes(PLACEHOLDER)
  await copyText(
    isWithKey ? code.replaceAll(PLACEHOLDER, key) : code,
    isWithKey ? 'Copied, with your key in it' : 'Copied',
  )
}

export async function copyText(text, word = 'Copied') {
  try {
    await navigator.clipboard.writeText(text)
    toast(word)
  } catch {
    toast('The browser did not let this page copy: select the text and copy it')
  }
}

/** Tabs by the ARIA pattern: arrows move, the panel follows. */
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
