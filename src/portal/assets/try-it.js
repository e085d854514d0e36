import { ApiError, api, request } from './api.js'
import { el, toast } from './dom.js'
import { currentKey, onKey, useKey } from './key.js'
import { visit } from './navigate.js'
import { snippets } from './snippets.js'

/** The page of one API: the visitor's key, and a form for each endpoint. */
export function startApiPage(view) {
  const input = view.querySelector('[data-key]')
  input.value = currentKey()
  input.addEventListener('input', () => useKey(input.value))
  onKey(input, (key) => {
    if (input.value !== key) input.value = key
  })
  view.querySelector('[data-make-key]').addEventListener('click', makeTestKey)
  for (const form of view.querySelectorAll('[data-try]')) startForm(form)
}

async function makeTestKey() {
  try {
    const { key } = await api('/v1/keys', { method: 'POST', body: { environment: 'test', label: 'Portal' } })
    useKey(key)
    toast('A test key is made and in use; find it under Account')
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status !== 401) return toast(`${error.message} ${error.hint}`)
    toast('Sign up or log in first; it takes a moment')
    await visit(`/signup?next=${encodeURIComponent(location.pathname)}`)
  }
}

function startForm(form) {
  const { slug, path, base } = form.dataset
  const codes = form.parentElement.querySelectorAll('[data-language]')
  form.addEventListener('input', () => {
    const written = snippets({ baseUrl: base, slug, path, parameters: parametersOf(form) })
    for (const panel of codes) panel.querySelector('code').textContent = written[panel.dataset.language]
  })
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    await send(form)
  })
}

/** What is filled in; numbers as numbers where they are. */
function parametersOf(form) {
  const filled = [...new FormData(form)].filter(([, value]) => value !== '')
  return Object.fromEntries(
    filled.map(([name, value]) => [name, /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value]),
  )
}

async function send(form) {
  const outcome = form.querySelector('[data-outcome]')
  const answer = form.querySelector('[data-answer]')
  const hint = form.querySelector('[data-hint]')
  const button = form.querySelector('button[type=submit]')
  const key = currentKey()
  hint.hidden = true
  if (key === '') {
    outcome.textContent = 'Put in a key above, or make a test key.'
    document.querySelector('[data-key]').focus()
    return
  }
  button.disabled = true
  outcome.textContent = 'Waiting …'
  const startedAt = performance.now()
  try {
    const filled = [...new FormData(form)].filter(([, value]) => value !== '')
    const query = new URLSearchParams(filled).toString()
    const url = `/v1/call/${form.dataset.slug}${form.dataset.path}${query === '' ? '' : `?${query}`}`
    const { status, headers, data, text } = await request(url, { headers: { 'x-api-key': key } })
    const took = Math.round(performance.now() - startedAt)
    const isTest = headers.get('x-gateway-mode') === 'test'
    outcome.textContent = [`${status} in ${took} ms`, isTest && 'recorded example', left(headers)]
      .filter(Boolean)
      .join(' · ')
    answer.hidden = false
    answer.classList.toggle('bad', status >= 400)
    answer.querySelector('code').textContent = data === undefined ? text : JSON.stringify(data, null, 2)
    if (data?.error) {
      hint.hidden = false
      hint.replaceChildren(
        el('strong', {}, data.error.code),
        ` ${data.error.hint} `,
        el('a', { href: `/docs/errors#${data.error.code}` }, 'What this means'),
      )
    }
  } catch (error) {
    outcome.textContent = `${error.message} ${error.hint ?? ''}`
  } finally {
    button.disabled = false
  }
}

/** What the plan has left this minute. */
function left(headers) {
  const remaining = headers.get('x-ratelimit-remaining')
  return remaining === null ? undefined : `${remaining} left this minute`
}
