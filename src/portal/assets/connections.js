import { actionButton, showAccount, table } from './account-view.js'
import { api } from './api.js'
import { confirmed, edited, el, moment, toast } from './dom.js'
import { allowedFields, allowedWords } from './limits.js'

/** Applications that are connected to the account: list, change, disconnect. */
export function startConnections(view) {
  return showAccount(view, async (refresh) => {
    const { connections } = await api('/v1/connections')
    if (connections.length === 0) {
      return [
        el(
          'p',
          { class: 'empty' },
          'No application is connected. See ',
          el('a', { href: '/agents' }, 'For agents'),
          '.',
        ),
      ]
    }
    const rows = connections.map((connection) => [
      connection.clientName,
      el('code', {}, connection.redirectHost),
      allowedWords(connection),
      moment(connection.createdAt),
      moment(connection.lastUsedAt),
      el('div', { class: 'actions' }, changeButton(connection, refresh), endButton(connection, refresh)),
    ])
    const headings = ['Application', 'Code went to', 'May call', 'Since', 'Last used', 'Action']
    return [table('Connected apps', headings, rows)]
  })
}

function changeButton(connection, refresh) {
  return actionButton('Change', { 'aria-label': `Change ${connection.clientName}` }, async () => {
    const { fields, read } = await allowedFields(connection)
    const save = () => api(`/v1/connections/${connection.id}`, { method: 'PATCH', body: read() })
    if (!(await edited(`What may ${connection.clientName} call?`, fields, { save }))) return
    toast('The application has been changed')
    await refresh()
  })
}

function endButton(connection, refresh) {
  return actionButton('End', { 'aria-label': `End ${connection.clientName}` }, async () => {
    const question = `End the connection of ${connection.clientName}? The gateway refuses it from the next request on.`
    if (!(await confirmed(question, 'End'))) return
    await api(`/v1/connections/${connection.id}`, { method: 'DELETE' })
    toast('The application has been signed out')
    await refresh()
  })
}
