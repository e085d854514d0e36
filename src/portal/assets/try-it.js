import { actionButton } from './account-view.js'
import { api, request } from './api.js'
import { showDetails } from './call-details.js'
import { showCode } from './code.js'
import { el, fieldsOf } from './dom.js'
import { currentKey, isKeyShown, onKey, showKey, useKey } from './key.js'
import { snippets } from './snippets.js'
import { Waits } from './waits.js'
import { callsOf, forPeople } from './words.js'

/** The page of one API: what calls are sent with, and a form for each endpoint. */
export function startApiPage(view) {
  const sendAs = view.querySelector('[data-send-as]')
  const waits = new Waits(sendAs, [...view.querySelectorAll('[data-try] button[type=submit]')])
  const input = sendAs.querySelector('[data-key]')
  const keyField = sendAs.querySelector('[data-key-field]')
  const isVisitor = sendAs.dataset.visitor !== undefined
  const showField = () => {
    keyField.hidden = !isVisitor && sendAs.elements['send-as'].value !== 'key'
  }
  // A visitor who has entered a key probably wants to use it.
  const chooseKey = () => {
    if (isVisitor && input.value !== '') sendAs.elements['send-as'].value = 'key'
  }
  const shows = sendAs.querySelector('[data-show-key]')
  shows.addEventListener('change', () => showKey(shows.checked))
  startMadeKey(view.querySelector('[data-made-key]'))
  shows.checked = isKeyShown()
  input.value = currentKey()
  chooseKey()
  input.addEventListener('input', () => useKey(input.value))
  onKey(input, (key) => {
    if (input.value !== key) input.value = key
    chooseKey()
    shows.checked = isKeyShown()
    waits.show()
  })
  sendAs.addEventListener('change', () => {
    showField()
    waits.show()
  })
  sendAs.addEventListener('submit', (event) => event.preventDefault())
  showField()
  for (const form of view.querySelectorAll('[data-try]')) startForm(form, { sendAs, waits })
}

/** After a sign-up: shows the newcomer's test key, and a button for a live key. */
function startMadeKey(place) {
  const show = () => {
    const key = currentKey()
    place.hidden = !isKeyShown()
    if (place.hidden) return
    const isTest = key.startsWith('agw_test_')
    const words = `Your ${isTest ? 'test' : 'live'} key, shown until you reload this page: `
    place.replaceChildren(el('p', {}, words, el('code', { 'data-new-key': true }, key)))
    if (isTest) place.append(actionButton('Make a live key', {}, makeLiveKey))
  }
  onKey(place, show)
  show()
}

async function makeLiveKey() {
  const { key } = await api('/v1/keys', { method: 'POST', body: { environment: 'live' } })
  useKey(key, true)
}

function startForm(form, { sendAs, waits }) {
  const { slug, path, method, base } = form.dataset
  const section = form.closest('.endpoint')
  const codes = section.querySelectorAll('[data-language]')
  const recorded = recordedAnswer(form, section)
  form.addEventListener('input', ({ target }) => {
    if (target.getAttribute?.('aria-invalid')) markWrong(form, undefined)
    const written = snippets({ baseUrl: base, slug, path, method, parameters: parametersOf(form) })
    for (const panel of codes) showCode(panel.querySelector('code'), written[panel.dataset.language])
  })
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const chosen = sendAs.elements['send-as'].value
    if (chosen === 'test' && sendAs.dataset.visitor !== undefined) recorded.show()
    else await send(form, section, { sendAs: chosen, waits })
  })
}

/** The recorded answer of the page. A visitor without a credential sees it again without a call. */
function recordedAnswer(form, section) {
  const [answer, mode] = ['answer', 'mode'].map((name) => section.querySelector(`[data-${name}]`))
  const [body, words, values] = [answer.textContent, mode.textContent, JSON.stringify(filledIn(form))]
  return {
    show() {
      const isSame = JSON.stringify(filledIn(form)) === values
      form.querySelector('[data-hint]').hidden = true
      markWrong(form, undefined)
      answer.classList.remove('bad')
      answer.querySelector('code').textContent = body
      mode.textContent = isSame ? words : `${words}, not for these values`
      mode.className = 'badge recorded'
      section.querySelector('[data-details]').replaceChildren()
      form.querySelector('[data-outcome]').textContent = isSame
        ? 'This is the recorded answer. Log in for live data.'
        : 'The recorded answer is for other values. Log in to send yours.'
    },
  }
}

/** The filled-in fields as they will be sent. Blanks around a number are removed. */
function filledIn(form) {
  return fieldsOf(form)
    .map(([name, value]) => [name, form.elements[name].inputMode === 'decimal' ? value.trim() : value])
    .filter(([, value]) => value !== '')
}

/** The filled-in values: numbers as numbers, a list as its items, and a body as parsed JSON. */
function parametersOf(form) {
  return Object.fromEntries(filledIn(form).map(([name, value]) => [name, valueIn(form.elements[name], value)]))
}

function valueIn(field, text) {
  if (field.dataset.json !== undefined) return jsonOf(text)
  if (field.dataset.list !== undefined) return text.split(',').map((item) => item.trim())
  return field.inputMode === 'decimal' && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}

/** If it is not JSON, the text itself, so that the gateway says what is wrong. */
function jsonOf(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Parameters as the query of a GET (a list becomes a pair for each item) or as the body of a POST.
 */
function requestOf(form) {
  const { slug, path, method } = form.dataset
  const url = `/v1/call/${slug}${path}`
  if (method === 'POST') {
    return { url, method, body: JSON.stringify(parametersOf(form)), type: { 'content-type': 'application/json' } }
  }
  const pairs = filledIn(form).flatMap(([name, value]) =>
    [valueIn(form.elements[name], value)].flat().map((item) => [name, typeof item === 'number' ? value : item]),
  )
  const query = new URLSearchParams(pairs).toString()
  return { url: `${url}${query === '' ? '' : `?${query}`}` }
}

/**
 * The headers of a call: the key, or the headers that make the session count and choose test data.
 */
function credentialOf(sendAs) {
  if (sendAs === 'key') return { 'x-api-key': currentKey() }
  return { 'x-portal-request': '1', ...(sendAs === 'test' ? { 'x-gateway-mode': 'test' } : {}) }
}

async function send(form, section, { sendAs, waits }) {
  const outcome = form.querySelector('[data-outcome]')
  const hint = form.querySelector('[data-hint]')
  const button = form.querySelector('button[type=submit]')
  hint.hidden = true
  markWrong(form, undefined)
  if (sendAs === 'key' && currentKey() === '') {
    outcome.textContent = 'Enter an API key above, or choose test data.'
    /** @type {HTMLInputElement} */
    const field = document.querySelector('[data-key]')
    field.focus()
    return
  }
  const credential = waits.chosen()
  waits.begin(button)
  outcome.textContent = 'Waiting …'
  const startedAt = performance.now()
  try {
    const { url, type, ...options } = requestOf(form)
    const sent = { ...credentialOf(sendAs), ...type }
    const { status, headers, data, text } = await request(url, { ...options, headers: sent })
    const tookMs = performance.now() - startedAt
    outcome.textContent = [`${status} in ${Math.round(tookMs)} ms`, remainingCalls(headers)].filter(Boolean).join(' · ')
    const body = data === undefined ? text : JSON.stringify(data, null, 2)
    showAnswer(section, { status, headers, body })
    showDetails(section, headers, tookMs)
    if (data?.error) {
      showHint(hint, data.error, headers)
      markWrong(form, /\bparam=(\S+)/.exec(data.error.hint ?? '')?.[1])
    }
    if (data?.error?.code === 'RATE_LIMIT_EXCEEDED') waits.add(credential, Number(headers.get('retry-after')))
  } catch (error) {
    outcome.textContent = forPeople(error)
  } finally {
    waits.end(button)
  }
}

/** Words for `X-Gateway-Example`, for test calls without a recorded answer. */
const EXAMPLE_WORDS = {
  document: 'Test data: an example of the API’s document',
  made: 'Test data, made from the schema',
}

/** Says in the badge if a recorded answer is for other values (`X-Gateway-Recorded-For`). */
function showAnswer(section, { status, headers, body }) {
  const answer = section.querySelector('[data-answer]')
  const mode = section.querySelector('[data-mode]')
  const testWords =
    EXAMPLE_WORDS[headers.get('x-gateway-example')] ??
    (headers.has('x-gateway-recorded-for') ? 'Test data, not for these values' : 'Test data')
  answer.classList.toggle('bad', status >= 400)
  answer.querySelector('code').textContent = body
  mode.textContent = status >= 400 ? `Error ${status}` : isTest(headers) ? testWords : 'Live data'
  mode.className = `badge ${status >= 400 ? 'invalid' : isTest(headers) ? 'recorded' : 'valid'}`
}

/** Marks the field that the gateway refused; undefined removes the mark. */
function markWrong(form, name) {
  for (const field of form.elements) {
    const isWrong = name !== undefined && field.name === name
    const described = (field.getAttribute('aria-describedby') ?? '')
      .split(' ')
      .filter((id) => id && id !== hintId(form))
    if (isWrong) {
      field.setAttribute('aria-invalid', 'true')
      described.push(hintId(form))
    } else field.removeAttribute('aria-invalid')
    if (described.length > 0) field.setAttribute('aria-describedby', described.join(' '))
    else field.removeAttribute('aria-describedby')
  }
}

const hintId = (form) => form.querySelector('[data-hint]').id

function showHint(hint, error, headers) {
  hint.hidden = false
  hint.replaceChildren(
    el('strong', {}, error.code),
    ` ${minuteWords(error, headers) ?? forPeople(error)} `,
    el('a', { href: `/docs/errors#${error.code}` }, 'What this means'),
  )
}

/** Words for a used-up minute of the plan. The button counts down the seconds. */
function minuteWords({ code, hint = '' }, headers) {
  const limit = headers.get('x-ratelimit-limit')
  if (code !== 'RATE_LIMIT_EXCEEDED' || limit === null || hint.includes(' limit_of=')) return undefined
  const [kind, other] = isTest(headers) ? ['test', 'Live'] : ['live', 'Test']
  return `You have used your ${callsOf(limit, `${kind} `)} of this minute. ${other} calls are counted apart.`
}

/** The remaining calls of this minute. Test calls and live calls are counted separately. */
function remainingCalls(headers) {
  const remaining = headers.get('x-ratelimit-remaining')
  if (remaining === null) return undefined
  const kind = isTest(headers) ? 'test' : 'live'
  return `${callsOf(remaining, `${kind} `)} left this minute`
}

const isTest = (headers) => headers.get('x-gateway-mode') === 'test'
