import { request } from './api.js'
import { fieldsOf } from './dom.js'
import { forPeople } from './words.js'

/** Forms of the reference. Each sends its route with the visitor's session and shows the answer. */
export function startReference(view) {
  for (const form of view.querySelectorAll('[data-route]')) {
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      await send(form)
    })
  }
  openNamed(view)
}

/** If the address names an operation, it is opened. */
function openNamed(view) {
  const named = location.hash === '' ? undefined : document.getElementById(location.hash.slice(1))
  if (!named?.matches?.('details') || !view.contains(named)) return
  named.open = true
  named.scrollIntoView()
}

async function send(form) {
  const outcome = form.querySelector('[data-outcome]')
  const answer = form.querySelector('[data-answer]')
  const button = form.querySelector('button[type=submit]')
  const { body, ...given } = Object.fromEntries(fieldsOf(form))
  button.disabled = true
  outcome.textContent = 'Waiting …'
  try {
    const url = addressOf(form.dataset.path, given)
    const options = { method: form.dataset.method, headers: { 'x-portal-request': '1' } }
    if (body !== undefined && body.trim() !== '') {
      options.headers['content-type'] = 'application/json'
      options.body = body
    }
    const { status, data, text } = await request(url, options)
    outcome.textContent =
      status === 401 ? `${status}. ${forPeople(data?.error?.code ? data.error : data)}` : String(status)
    answer.hidden = text === ''
    answer.classList.toggle('bad', status >= 400)
    answer.querySelector('code').textContent = data === undefined ? text : JSON.stringify(data, null, 2)
  } catch (error) {
    outcome.textContent = forPeople(error)
  } finally {
    button.disabled = false
  }
}

/** The path with its parameters filled in. The other parameters go into the query. */
function addressOf(path, given) {
  const rest = new URLSearchParams()
  let address = path
  for (const [name, value] of Object.entries(given)) {
    if (address.includes(`{${name}}`)) address = address.replace(`{${name}}`, encodeURIComponent(value))
    else if (value !== '') rest.set(name, value)
  }
  return rest.size === 0 ? address : `${address}?${rest}`
}
