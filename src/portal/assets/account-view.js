import { ApiError, request } from './api.js'
import { el } from './dom.js'
import { visit } from './navigate.js'
import { forPeople } from './words.js'

/**
 * Fills an account page with the result of `build`, and again after each change. Failures are shown
 * in its place. A form with a `name` is kept while somebody types in it.
 */
export async function showAccount(view, build) {
  const body = view.querySelector('[data-body]')
  let refreshes = 0
  const refresh = async () => {
    refreshes += 1
    const mine = refreshes
    try {
      const parts = await build(refresh)
      // The visitor has left the page, or a later refresh shows what is newer.
      if (!body.isConnected || mine !== refreshes) return
      const filled = [...body.querySelectorAll('form[name][data-filled]')]
      body.replaceChildren(...[parts].flat().filter(Boolean))
      for (const form of filled)
        body.querySelector(`form[name="${CSS.escape(form.getAttribute('name'))}"]`)?.replaceWith(form)
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        await visit(`/login?next=${encodeURIComponent(location.pathname + location.search)}`)
        return
      }
      body.replaceChildren(failureCard(error))
    } finally {
      body.setAttribute('aria-busy', 'false')
    }
  }
  await refresh()
}

/** Shows a failure to load, and what to do. */
export function failureCard(error) {
  if (error.status === 404 && error.code === 'NOT_FOUND') {
    return el('p', { class: 'notice' }, 'This gateway does not offer this yet.')
  }
  return el('p', { class: 'failure', role: 'alert' }, forPeople(error))
}

/** A form that runs an action, and shows beside it what went wrong. */
export function actionForm(members, action, ...children) {
  const failure = el('p', { class: 'failure', role: 'alert', hidden: true })
  const isFilled = (is) => form.toggleAttribute('data-filled', is)
  const form = el('form', { ...members, onsubmit: run, oninput: () => isFilled(true) }, ...children, failure)
  async function run(event) {
    event.preventDefault()
    failure.hidden = true
    isFilled(false)
    const buttons = form.querySelectorAll('button')
    for (const button of buttons) button.disabled = true
    try {
      await action(Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== '')), form)
    } catch (error) {
      isFilled(true)
      failure.textContent = forPeople(error)
      failure.hidden = false
    } finally {
      for (const button of buttons) button.disabled = false
      returnFocus(event.submitter)
    }
  }
  return form
}

/**
 * Returns the focus to a control that was disabled for a while, or to its replacement on a renewed
 * page. Without either, a keyboard user would start again at the beginning of the page.
 */
export function returnFocus(control) {
  if (document.activeElement !== document.body) return
  const label = control?.getAttribute('aria-label')
  const successor = label && document.querySelector(`main [aria-label="${CSS.escape(label)}"]`)
  const next = control?.isConnected ? control : successor || document.querySelector('main')
  next.focus({ preventScroll: true })
}

/** A button that runs an action, and shows beside it what went wrong. */
export function actionButton(text, members, action) {
  let failure
  const button = el('button', { type: 'button', class: 'button quiet', ...members, onclick: run }, text)
  async function run() {
    button.disabled = true
    failure?.remove()
    try {
      await action()
    } catch (error) {
      failure = failureCard(error)
      button.after(failure)
    } finally {
      button.disabled = false
      // If the button is disabled while a dialog is open, it cannot take the focus back when the
      // dialog closes.
      returnFocus(button)
    }
  }
  return button
}

/**
 * Saves an answer as a file. A link would not work, because the session counts only for requests of
 * this page's scripts.
 */
export async function download(path, { name, type }) {
  const { status, data, text } = await request(path, { headers: { 'x-portal-request': '1', accept: type } })
  if (status >= 400) throw new ApiError(status, data ?? {})
  const address = URL.createObjectURL(new Blob([text], { type }))
  el('a', { href: address, download: name }).click()
  URL.revokeObjectURL(address)
}

/** A table with headings; on narrow screens each row is a card with the headings as labels. */
export function table(label, headings, rows) {
  const head = el('tr', {}, ...headings.map((heading) => el('th', { scope: 'col' }, heading)))
  return el(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
    el(
      'table',
      { class: 'cards' },
      el('thead', {}, head),
      el(
        'tbody',
        {},
        ...rows.map((cells) =>
          el('tr', {}, ...cells.map((cell, index) => el('td', { 'data-label': headings[index] }, cell))),
        ),
      ),
    ),
  )
}
