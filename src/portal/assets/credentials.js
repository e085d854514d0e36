import { returnFocus } from './account-view.js'
import { api } from './api.js'
import { useKey } from './key.js'
import { visit } from './navigate.js'
import { warnOfWeak } from './password.js'
import { beginSession } from './session.js'
import { forPeople } from './words.js'

/** Sign-up and log-in. */
export function startCredentials(view) {
  const form = view.querySelector('[data-credentials]')
  const failure = form.querySelector('[data-failure]')
  const button = form.querySelector('button[type=submit]')
  const password = form.elements.password
  form.querySelector('[data-show-password]').addEventListener('change', ({ target }) => {
    password.type = target.checked ? 'text' : 'password'
  })
  const provider = view.querySelector('[data-provider]')
  if (provider) provider.href = `/login/oidc?next=${encodeURIComponent(nextPage(form.dataset.start))}`
  if (form.dataset.credentials === 'signup') warnOfWeak(password, form.querySelector('[data-weak]'))
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    failure.hidden = true
    button.disabled = true
    try {
      const { email, password } = Object.fromEntries(new FormData(form))
      await beginSession(form.dataset.credentials, { email, password })
      const next = nextPage(form.dataset.start)
      if (form.dataset.credentials === 'signup' && next.startsWith('/apis/')) await makeFirstKey()
      await visit(next)
    } catch (error) {
      failure.textContent = forPeople(error)
      failure.hidden = false
    } finally {
      button.disabled = false
      returnFocus(button)
    }
  })
}

/** Makes a test key, so that the code of the next page works as shown. */
async function makeFirstKey() {
  try {
    const { key } = await api('/v1/keys', { method: 'POST', body: { label: 'First key', environment: 'test' } })
    useKey(key, true)
  } catch {
    // The account exists although this failed, and the page explains how to make a key.
  }
}

/**
 * The page from which the visitor came, if it is a path of this portal. A newcomer goes to a page
 * that is ready to send a call.
 */
function nextPage(start) {
  const next = new URLSearchParams(location.search).get('next') ?? ''
  if (/^\/(apis\/[a-z0-9-]+|account(\/[\w-]+)*(\?[\w=&%:.+-]*)?)$/.test(next)) return next
  return start
}
