import { actionButton, actionForm, showAccount, table } from './account-view.js'
import { api, apiAll } from './api.js'
import { copyText } from './code.js'
import { confirmed, el, field, moment, select, toast } from './dom.js'
import { useKey } from './key.js'

/** API keys: create, list, revoke. */
export function startKeys(view) {
  let created
  return showAccount(view, async (refresh) => {
    const { keys } = await apiAll('/v1/keys')
    const create = keyForm({}, async (made) => {
      created = made
      await refresh()
    })
    const onRevoked = async (id) => {
      if (created?.id === id) created = undefined
      await refresh()
    }
    return [
      created && createdCard(created),
      el('section', { class: 'card' }, el('h2', {}, 'New key'), create),
      keyTable(keys, onRevoked),
    ]
  })
}

/** A form that makes a key; `extra` goes into the request. */
export function keyForm(extra, onMade) {
  return actionForm(
    { class: 'inline' },
    async ({ label, environment, days }) => {
      const expires = days ? { expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() } : {}
      const body = { ...extra, environment, ...(label ? { label } : {}), ...expires }
      const made = await api('/v1/keys', { method: 'POST', body })
      useKey(made.key)
      await onMade(made)
    },
    field('Label', el('input', { name: 'label', maxlength: 255, placeholder: 'what it is for', autocomplete: 'off' })),
    field(
      'Environment',
      select({ name: 'environment' }, [
        ['test', 'test: recorded examples'],
        ['live', 'live: real data'],
      ]),
    ),
    field(
      'Expires',
      select({ name: 'days' }, [
        ['', 'never'],
        ['7', 'in 7 days'],
        ['30', 'in 30 days'],
        ['90', 'in 90 days'],
        ['365', 'in a year'],
      ]),
    ),
    el('button', { class: 'button', type: 'submit' }, 'Create key'),
  )
}

const DAY_MS = 86_400_000

/** The full key, this once. */
export function createdCard({ key }) {
  const card = el(
    'section',
    { class: 'card fresh', tabindex: '-1', 'aria-label': 'Your new key' },
    el('h2', {}, 'Your new key'),
    el('p', {}, 'It is shown this once. Copy it now and keep it where secrets are kept.'),
    el(
      'div',
      { class: 'code' },
      el('pre', { tabindex: '0', 'aria-label': 'Key' }, el('code', { 'data-new-key': true }, key)),
      el('button', { type: 'button', class: 'copy', onclick: () => copyText(key, 'Key copied') }, 'Copy key'),
    ),
    el(
      'p',
      {},
      'It is in use on the pages of the APIs: ',
      el('a', { href: document.querySelector('[data-start]').dataset.start }, 'try the first call'),
      '.',
    ),
  )
  requestAnimationFrame(() => card.focus())
  return card
}

/** Without `onRevoked` the visitor may look at the keys alone. */
export function keyTable(keys, onRevoked) {
  if (keys.length === 0) return el('p', { class: 'empty' }, 'No keys yet. A test key works at once.')
  const rows = keys.map((key) => [
    key.label ?? 'No label',
    el('span', { class: `badge ${key.environment}` }, key.environment),
    el('code', { class: 'key' }, nameOf(key)),
    moment(key.createdAt),
    moment(key.lastUsedAt),
    moment(key.expiresAt),
    ...(onRevoked ? [revokeButton(key, onRevoked)] : []),
  ])
  const heads = ['Label', 'Environment', 'Key', 'Created', 'Last used', 'Expires', ...(onRevoked ? ['Action'] : [])]
  return table('API keys', heads, rows)
}

function revokeButton(key, onRevoked) {
  return actionButton('Revoke', { 'aria-label': `Revoke ${key.label ?? nameOf(key)}` }, async () => {
    if (!(await confirmed(revokeWords(key), 'Revoke'))) return
    await api(`/v1/keys/${key.id}`, { method: 'DELETE' })
    toast('The key is revoked')
    await onRevoked(key.id)
  })
}

const nameOf = ({ keyPrefix, lastFour }) => `${keyPrefix}…${lastFour ?? ''}`

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Tells which key goes, when two look alike, and what happens then. */
function revokeWords(key) {
  const label = key.label ? ` “${key.label}”` : ''
  const used = key.lastUsedAt ? `last used ${day.format(new Date(key.lastUsedAt))}` : 'never used'
  return `Revoke ${nameOf(key)}${label} (created ${day.format(new Date(key.createdAt))}, ${used})? Apps using it stop working at once.`
}
