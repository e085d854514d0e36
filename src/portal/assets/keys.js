import { actionButton, actionForm, failureCard, showAccount, table } from './account-view.js'
import { api, apiAll } from './api.js'
import { copyText } from './code.js'
import { confirmed, edited, el, field, moment, select, toast } from './dom.js'
import { useKey } from './key.js'
import { allowedFields, allowedWords } from './limits.js'

/** API keys: create, list, change, rotate, revoke. */
export function startKeys(view) {
  let created
  return showAccount(view, async (refresh) => {
    const { keys } = await apiAll('/v1/keys')
    const onRevoked = async (id) => {
      if (created?.id === id) created = undefined
      await refresh()
    }
    const onMade = async (made) => {
      const card = createdCard(made)
      created = { id: made.id, card }
      await refresh()
      card.focus()
    }
    const create = keyForm({}, onMade)
    return [
      created?.card,
      el('section', { class: 'card' }, el('h2', {}, 'New key'), create),
      keyTable(keys, { onRevoked, onMade, onChanged: refresh }),
    ]
  })
}

/** A form that makes a key; `extra` goes into the request. */
export function keyForm(extra, onMade) {
  let allowed
  let failure
  const narrowing = el('details', { ontoggle: open }, el('summary', {}, 'What it may do'))
  async function open() {
    if (!narrowing.open || allowed) return
    failure?.remove()
    try {
      const opened = await allowedFields()
      if (allowed) return
      allowed = opened
      narrowing.append(allowed.fields)
    } catch (error) {
      failure = failureCard(error)
      narrowing.append(failure)
    }
  }
  return actionForm(
    { class: 'inline', name: `key ${extra.teamId ?? ''}` },
    async ({ label, environment, days }) => {
      const expires = days ? { expiresAt: expiryIn(days) } : {}
      const body = { ...extra, environment, ...(label ? { label } : {}), ...expires, ...allowed?.read() }
      const made = await api('/v1/keys', { method: 'POST', body })
      useKey(made.key, true)
      await onMade(made)
    },
    field('Label', el('input', { name: 'label', maxlength: 255, placeholder: 'what it is for', autocomplete: 'off' })),
    field(
      'Environment',
      select({ name: 'environment' }, [
        ['test', 'test: recorded data'],
        ['live', 'live: real data'],
      ]),
    ),
    field('Expires', select({ name: 'days' }, EXPIRIES)),
    narrowing,
    el('button', { class: 'button', type: 'submit' }, 'Create key'),
  )
}

const DAY_MS = 86_400_000

const EXPIRIES = [
  ['', 'never'],
  ['7', 'in 7 days'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
]

const expiryIn = (days) => (days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString())

/** Shows the full key, only this once. */
export function createdCard({ key }) {
  /** @type {HTMLElement} */
  const start = document.querySelector('[data-start]')
  return el(
    'section',
    { class: 'card fresh', tabindex: '-1', 'aria-label': 'Your new key' },
    el('h2', {}, 'Your new key'),
    el('p', {}, 'It is shown only once. Copy it now and store it with your secrets.'),
    el(
      'div',
      { class: 'code' },
      el('pre', { tabindex: '0', 'aria-label': 'Key' }, el('code', { 'data-new-key': true }, key)),
      el('button', { type: 'button', class: 'copy', onclick: () => copyText(key, 'Key copied') }, 'Copy key'),
    ),
    el(
      'p',
      {},
      'The code on the pages of the APIs has it: ',
      el('a', { href: start.dataset.start }, 'try the first call'),
      '.',
    ),
  )
}

/** Without listeners, the visitor can only view the keys. */
export function keyTable(keys, listeners) {
  if (keys.length === 0) return el('p', { class: 'empty' }, 'No keys yet. A test key works at once.')
  const rows = keys.map((key) => [
    el('div', {}, el('div', {}, key.label ?? 'No label'), el('code', { class: 'key' }, nameOf(key))),
    el('span', { class: `badge ${key.environment}` }, key.environment),
    allowedWords(key),
    moment(key.createdAt),
    moment(key.lastUsedAt),
    el('div', {}, moment(key.expiresAt), key.replacedBy && el('p', { class: 'small' }, 'Replaced by another key')),
    ...(listeners ? [keyActions(key, listeners)] : []),
  ])
  const heads = ['Key', 'Environment', 'May call', 'Created', 'Last used', 'Expires', ...(listeners ? ['Action'] : [])]
  return el('div', { class: 'keys' }, table('API keys', heads, rows))
}

function keyActions(key, { onRevoked, onMade, onChanged }) {
  const isReplaced = key.replacedBy !== null
  return el(
    'div',
    { class: 'actions' },
    !isReplaced && changeButton(key, onChanged),
    !isReplaced && rotateButton(key, onMade),
    revokeButton(key, onRevoked),
  )
}

function changeButton(key, onChanged) {
  return actionButton('Change', { 'aria-label': `Change ${fullNameOf(key)}` }, async () => {
    const label = el('input', { maxlength: 255, value: key.label ?? '', autocomplete: 'off' })
    const days = select({}, [['keep', key.expiresAt ? 'as it is' : 'never, as it is'], ...EXPIRIES])
    const allowed = await allowedFields(key)
    const choice = el('div', { class: 'stack' }, field('Label', label), field('Expires', days), allowed.fields)
    const save = async () => {
      const body = {
        label: label.value === '' ? null : label.value,
        ...allowed.read(),
        ...(days.value === 'keep' ? {} : { expiresAt: expiryIn(days.value) }),
      }
      await api(`/v1/keys/${key.id}`, { method: 'PATCH', body })
    }
    if (!(await edited(`Change ${nameOf(key)}`, choice, { save }))) return
    toast('The key has been changed')
    await onChanged()
  })
}

function rotateButton(key, onMade) {
  return actionButton('Rotate', { 'aria-label': `Rotate ${fullNameOf(key)}` }, async () => {
    const overlap = select({}, [
      ['86400', 'for a day'],
      ['3600', 'for an hour'],
      ['604800', 'for seven days'],
      ['0', 'no longer: it is refused at once'],
    ])
    const question = `Replace ${nameOf(key)} with a new key? The new key has the same label and limits, and both keys count together.`
    if (!(await confirmed(question, 'Rotate', field('The old key works', overlap)))) return
    const body = { overlapSeconds: Number(overlap.value) }
    const made = await api(`/v1/keys/${key.id}/rotate`, { method: 'POST', body })
    useKey(made.key, true)
    await onMade(made)
  })
}

function revokeButton(key, onRevoked) {
  return actionButton('Revoke', { 'aria-label': `Revoke ${fullNameOf(key)}` }, async () => {
    if (!(await confirmed(revokeWords(key), 'Revoke'))) return
    await api(`/v1/keys/${key.id}`, { method: 'DELETE' })
    toast('The key has been revoked')
    await onRevoked(key.id)
  })
}

/** The label, and the beginning and the end of the key, because keys may have the same label. */
const fullNameOf = (key) => [key.label, nameOf(key)].filter(Boolean).join(' ')

const nameOf = ({ keyPrefix, lastFour }) => `${keyPrefix}…${lastFour ?? ''}`

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Identifies the key, because two may look alike, and says what will happen. */
function revokeWords(key) {
  const label = key.label ? ` “${key.label}”` : ''
  const used = key.lastUsedAt ? `last used ${day.format(new Date(key.lastUsedAt))}` : 'never used'
  return `Revoke ${nameOf(key)}${label} (created ${day.format(new Date(key.createdAt))}, ${used})? Apps using it stop working at once.`
}
