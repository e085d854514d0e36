import { request } from './api.js'
import { el } from './dom.js'
import { currentKey, onKey, useKey } from './key.js'
import { snippets } from './snippets.js'
import { forPeople } from './words.js'

/** The page of one API: what calls are sent with, and a form for each endpoint. */
export function startApiPage(view) {
  const sendAs = view.querySelector('[data-send-as]')
  const input = sendAs.querySelector('[data-key]')
  const keyField = sendAs.querySelector('[data-key-field]')
  const showField = () => {
    keyField.hidden = sendAs.elements['send-as'].value !== 'key'
  }
  input.value = currentKey()
  input.addEventListener('input', () => useKey(input.value))
  onKey(input, (key) => {
    if (input.value !== key) input.value = key
  })
  sendAs.addEventListener('change', showField)
  sendAs.addEventListener('submit', (event) => event.preventDefault())
  showField()
  for (const form of view.querySelectorAll('[data-try]')) startForm(form, sendAs)
}

function startForm(form, sendAs) {
  const { slug, path, base } = form.dataset
  const section = form.closest('.endpoint')
  const codes = section.querySelectorAll('[data-language]')
  form.addEventListener('input', () => {
    const written = snippets({ baseUrl: base, slug, path, parameters: parametersOf(form) })
    for (const panel of codes) panel.querySelector('code').textContent = written[panel.dataset.language]
  })
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    await send(form, section, sendAs.elements['send-as'].value)
  })
}

/** What is filled in; numbers as numbers where they are. */
function parametersOf(form) {
  const filled = [...new FormData(form)].filter(([, value]) => value !== '')
  return Object.fromEntries(
    filled.map(([name, value]) => [name, /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value]),
  )
}

/** The headers of a call: the key, or what makes the log-in count and chooses test data. */
function credentialOf(sendAs) {
  if (sendAs === 'key') return { 'x-api-key': currentKey() }
  return { 'x-portal-request': '1', ...(sendAs === 'test' ? { 'x-gateway-mode': 'test' } : {}) }
}

async function send(form, section, sendAs) {
  const outcome = form.querySelector('[data-outcome]')
  const hint = form.querySelector('[data-hint]')
  const button = form.querySelector('button[type=submit]')
  hint.hidden = true
  if (sendAs === 'key' && currentKey() === '') {
    outcome.textContent = 'Put in an API key above, or log in to send without one.'
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
    const { status, headers, data, text } = await request(url, { headers: credentialOf(sendAs) })
    outcome.textContent = [`${status} in ${Math.round(performance.now() - startedAt)} ms`, left(headers)]
      .filter(Boolean)
      .join(' · ')
    const isExample = [...form.elements].every(({ value, defaultValue = value }) => value === defaultValue)
    const body = data === undefined ? text : JSON.stringify(data, null, 2)
    showAnswer(section, { status, headers, body, isExample })
    if (data?.error) showHint(hint, data.error, { headers, button })
  } catch (error) {
    outcome.textContent = forPeople(error)
  } finally {
    if (button.dataset.until === undefined) button.disabled = false
  }
}

/** A recorded example is for its own parameters: for others, the badge says so. */
function showAnswer(section, { status, headers, body, isExample }) {
  const answer = section.querySelector('[data-answer]')
  const mode = section.querySelector('[data-mode]')
  const isTest = headers.get('x-gateway-mode') === 'test'
  const testWords = isExample ? 'Test data' : 'Test data, not for these values'
  answer.classList.toggle('bad', status >= 400)
  answer.querySelector('code').textContent = body
  mode.textContent = status >= 400 ? `Error ${status}` : isTest ? testWords : 'Live data'
  mode.className = `badge ${status >= 400 ? 'invalid' : isTest ? 'recorded' : 'valid'}`
}

function showHint(hint, error, { headers, button }) {
  hint.hidden = false
  hint.replaceChildren(
    el('strong', {}, error.code),
    ` ${forPeople(error)} `,
    el('a', { href: `/docs/errors#${error.code}` }, 'What this means'),
  )
  const seconds = Number(headers.get('retry-after'))
  if (error.code === 'RATE_LIMIT_EXCEEDED' && seconds > 0) countDown(button, seconds)
}

/** Sending is of no use before the plan's minute has passed: the button says how long. */
function countDown(button, seconds) {
  button.disabled = true
  button.dataset.until = String(performance.now() + seconds * 1_000)
  const tick = () => {
    const leftMs = Number(button.dataset.until) - performance.now()
    if (leftMs > 0 && button.isConnected) {
      button.textContent = `Send in ${Math.ceil(leftMs / 1_000)} s`
      return
    }
    clearInterval(timer)
    delete button.dataset.until
    button.disabled = false
    button.textContent = 'Send'
  }
  const timer = setInterval(tick, 500)
  tick()
}

/** What the plan has left this minute. */
function left(headers) {
  const remaining = headers.get('x-ratelimit-remaining')
  return remaining === null ? undefined : `${remaining} calls left this minute`
}
