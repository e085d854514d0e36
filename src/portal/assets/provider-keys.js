import { actionButton, actionForm, showAccount, table } from './account-view.js'
import { api } from './api.js'
import { confirmed, el, field, moment, select, toast } from './dom.js'

/**
 * The query that names the team whose provider keys the page shows, from the page's address; empty
 * for the visitor's own keys.
 */
const ownerQuery = () => {
  const teamId = new URLSearchParams(location.search).get('team')
  return teamId ? `?teamId=${encodeURIComponent(teamId)}` : ''
}

/** Keys for upstreams that accept them: the visitor's own, or a team's. */
export function startProviderKeys(view) {
  const query = ownerQuery()
  return showAccount(view, async (refresh) => {
    const list = el('div')
    const show = (records) => {
      list.replaceChildren(
        records.length === 0
          ? el('p', { class: 'empty' }, 'No provider keys yet.')
          : table(
              'Provider keys',
              ['API', 'Own key', 'Status', 'Key', 'Saved', 'Checked', 'Action'],
              records.map((record) => row(record, { query, refresh })),
            ),
      )
    }
    const { providerKeys: records } = await api(`/v1/provider-keys${query}`)
    const names = JSON.parse(view.dataset.apis)
    const save = actionForm(
      { class: 'inline', name: 'provider-key' },
      async ({ slug, key }, form) => {
        const { validationFailure } = await api(`/v1/provider-keys/${slug}${query}`, { method: 'PUT', body: { key } })
        form.reset()
        toast(validationFailure ? 'The key is saved but not checked yet' : 'The key is saved and is being checked')
        await refresh()
      },
      field('API', select({ name: 'slug' }, names)),
      field(
        'Provider key',
        el('input', { name: 'key', type: 'password', required: true, autocomplete: 'off', spellcheck: 'false' }),
      ),
      el('button', { class: 'button', type: 'submit' }, 'Save key'),
    )
    show(records)
    followChecks({ list, show, records, query }).catch(() =>
      toast('The result of the check could not be read. Reload the page.'),
    )
    return [
      el(
        'p',
        {},
        query === ''
          ? 'If a source accepts your own key, your calls use that key and its limits. Keys are stored encrypted and never shown again.'
          : 'The keys of the team use these provider keys and their limits. They are stored encrypted and never shown again.',
      ),
      el('section', { class: 'card' }, el('h2', {}, 'Save a key'), save),
      list,
    ]
  })
}

/**
 * Shows the results of running checks. Only the list is renewed, because the form may be in use.
 */
async function followChecks({ list, show, records, query }) {
  let shown = records
  for (let looks = 0; looks < LOOKS_MAX && shown.some(isBeingChecked); looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    if (!list.isConnected) return
    const { providerKeys: found } = await api(`/v1/provider-keys${query}`)
    if (JSON.stringify(found) !== JSON.stringify(shown)) show(found)
    shown = found
  }
}

const isBeingChecked = ({ status, validationFailure }) => status === 'unvalidated' && validationFailure === null

/** The result of a key's last check. */
function outcome({ displayName: name, status, validationFailure: failure }) {
  if (failure) return 'The key could not be checked'
  if (status === 'unvalidated') return 'The check is taking a while. Reload the page in a minute.'
  return status === 'valid' ? `${name} accepts the key` : `${name} refuses the key. Save another key.`
}

function row(record, { query, refresh }) {
  const path = `/v1/provider-keys/${record.apiSlug}`
  const check = actionButton('Check', { 'aria-label': `Check the key of ${record.displayName}` }, async () => {
    toast(outcome(await api(`${path}/validate${query}`, { method: 'POST' })))
    await refresh()
  })
  const remove = actionButton('Delete', { 'aria-label': `Delete the key of ${record.displayName}` }, async () => {
    if (!(await confirmed(`Delete your key of ${record.displayName}?`, 'Delete'))) return
    await api(path + query, { method: 'DELETE' })
    await refresh()
  })
  return [
    record.displayName,
    MODES[record.accessMode] ?? record.accessMode,
    el(
      'div',
      {},
      el('span', { class: `badge ${record.status}` }, record.status),
      record.validationFailure && el('p', { class: 'small' }, record.validationFailure.message),
    ),
    el('code', {}, record.maskedKey ?? ''),
    moment(record.savedAt),
    moment(record.lastValidatedAt),
    el('div', { class: 'actions' }, check, remove),
  ]
}

/**
 * A check ends within ten seconds, unless its source delays calls or no worker runs. Then polling
 * stops.
 */
const LOOK_EVERY_MS = 1_000
const LOOKS_MAX = 15

const MODES = { byok_available: 'Optional', byok_required: 'Required', platform_managed: 'Not needed' }
