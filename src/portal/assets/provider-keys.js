import { actionButton, actionForm, showAccount, table } from './account-view.js'
import { api } from './api.js'
import { confirmed, el, field, moment, select, toast } from './dom.js'

/** Keys of the visitor's own for upstreams that take them. */
export function startProviderKeys(view) {
  return showAccount(view, async (refresh) => {
    const { providerKeys: records } = await api('/v1/provider-keys')
    const names = JSON.parse(view.dataset.apis)
    const save = actionForm(
      { class: 'inline' },
      async ({ slug, key }, form) => {
        await api(`/v1/provider-keys/${slug}`, { method: 'PUT', body: { key } })
        form.reset()
        toast('The key is saved')
        await refresh()
      },
      field('API', select({ name: 'slug' }, names)),
      field(
        'Provider key',
        el('input', { name: 'key', type: 'password', required: true, autocomplete: 'off', spellcheck: 'false' }),
      ),
      el('button', { class: 'button', type: 'submit' }, 'Save key'),
    )
    return [
      el(
        'p',
        {},
        'Where a source takes your own key, your calls use it and its limits. Keys are stored encrypted and never shown again.',
      ),
      el('section', { class: 'card' }, el('h2', {}, 'Save a key'), save),
      records.length === 0
        ? el('p', { class: 'empty' }, 'No provider keys yet.')
        : table(
            'Provider keys',
            ['API', 'Own key', 'Status', 'Key', 'Saved', 'Checked', 'Action'],
            records.map((record) => row(record, refresh)),
          ),
    ]
  })
}

function row(record, refresh) {
  const path = `/v1/provider-keys/${record.apiSlug}`
  const check = actionButton('Check', { 'aria-label': `Check the key of ${record.displayName}` }, async () => {
    await api(`${path}/validate`, { method: 'POST' })
    await refresh()
  })
  const remove = actionButton('Delete', { 'aria-label': `Delete the key of ${record.displayName}` }, async () => {
    if (!(await confirmed(`Delete your key of ${record.displayName}?`, 'Delete'))) return
    await api(path, { method: 'DELETE' })
    await refresh()
  })
  return [
    record.displayName,
    MODES[record.accessMode] ?? record.accessMode,
    el('span', { class: `badge ${record.status}` }, record.status),
    el('code', {}, record.maskedKey ?? ''),
    moment(record.savedAt),
    moment(record.lastValidatedAt),
    el('div', { class: 'actions' }, check, remove),
  ]
}

const MODES = { byok_available: 'Optional', byok_required: 'Required', platform_managed: 'Not needed' }
