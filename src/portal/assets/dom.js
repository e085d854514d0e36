import { forPeople } from './words.js'

/**
 * Makes an element. Members that begin with `on` are listeners; other members are attributes. Texts
 * are never parsed as HTML.
 */
export function el(name, members = {}, ...children) {
  const element = document.createElement(name)
  for (const [member, value] of Object.entries(members)) {
    if (value === undefined || value === null || value === false) continue
    if (member.startsWith('on')) element.addEventListener(member.slice(2), value)
    else element.setAttribute(member, value === true ? '' : String(value))
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false))
  return element
}

/** As `el`, for SVG. */
export function svg(name, members = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [member, value] of Object.entries(members)) element.setAttribute(member, String(value))
  element.append(...children)
  return element
}

let counter = 0

/** A labelled field. */
export function field(label, control, help) {
  counter += 1
  control.id ||= `f${counter}`
  return el(
    'div',
    { class: 'field' },
    el('label', { for: control.id }, label),
    control,
    help && el('p', { class: 'small' }, help),
  )
}

export function select(members, options) {
  return el('select', members, ...options.map(([value, text]) => el('option', { value }, text ?? value)))
}

/**
 * The fields of a form as text. No form here has a file.
 *
 * @param {HTMLFormElement} form
 * @returns {[string, string][]}
 */
export function fieldsOf(form) {
  return [...new FormData(form)].map(([name, value]) => [name, String(value)])
}

let toastTimer

/** Shows a message to the visitor for a while. */
export function toast(text) {
  const place = document.querySelector('#toast')
  place.textContent = text
  place.classList.add('shown')
  clearTimeout(toastTimer)
  toastTimer = setTimeout(() => place.classList.remove('shown'), 4000)
}

const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** Replaces the times of a page by times in the visitor's own language and time zone. */
export function localizeMoments(root) {
  for (const time of root.querySelectorAll('time[data-moment]'))
    time.textContent = dates.format(new Date(time.dateTime))
}

/** A time in the visitor's language, or a replacement if there is none. */
export function moment(iso, none = 'never') {
  return iso ? el('time', { datetime: iso }, dates.format(new Date(iso))) : none
}

const datesToTheSecond = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** A time in a log, with seconds, because a log has many lines in a minute. */
export function momentOfLog(iso) {
  return el('time', { datetime: iso }, datesToTheSecond.format(new Date(iso)))
}

/**
 * Asks for confirmation before something that cannot be undone. Returns true if the visitor agrees.
 * `choice` is shown below the question.
 */
export function confirmed(question, yes, choice) {
  const keep = el('button', { class: 'button quiet', value: 'no', autofocus: true }, 'Keep')
  const form = el(
    'form',
    { method: 'dialog' },
    el('p', { id: 'question' }, question),
    choice,
    el('div', { class: 'actions' }, el('button', { class: 'button danger', value: 'yes' }, yes), keep),
  )
  return shownDialog(form)
}

/**
 * Opens a dialog with fields that `save` saves. Returns true if they were saved. If the gateway
 * refuses them, the dialog stays open and shows why, so that nothing must be typed again. Escape
 * closes the dialog at any time, so a dialog that was closed while it saved throws the refusal.
 */
export async function edited(title, fields, { yes = 'Save', save }) {
  const failure = el('p', { class: 'failure', role: 'alert', hidden: true })
  // An invalid field must not prevent the visitor from closing the dialog.
  const cancel = el('button', { class: 'button quiet', value: 'no', formnovalidate: true }, 'Cancel')
  const send = el('button', { class: 'button', value: 'yes' }, yes)
  const form = el(
    'form',
    { method: 'dialog', onsubmit: run },
    el('p', { id: 'question' }, title),
    fields,
    failure,
    el('div', { class: 'actions' }, send, cancel),
  )
  let saving
  async function run(event) {
    if (event.submitter === cancel) return
    event.preventDefault()
    failure.hidden = true
    send.disabled = true
    saving = save()
    try {
      await saving
      form.closest('dialog').close('yes')
    } catch (error) {
      saving = undefined
      failure.textContent = forPeople(error)
      failure.hidden = false
    } finally {
      send.disabled = false
    }
  }
  await shownDialog(form)
  if (saving === undefined) return false
  await saving
  return true
}

function shownDialog(form) {
  const answer = Promise.withResolvers()
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'question', onclose: () => answer.resolve(dialog.returnValue === 'yes') },
    form,
  )
  document.body.append(dialog)
  dialog.showModal()
  return answer.promise.finally(() => dialog.remove())
}
