import { actionButton, showAccount, table } from './account-view.js'
import { api } from './api.js'
import { confirmed, el, moment, toast } from './dom.js'

/** Applications that are signed in to the account: list, end. */
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
      connection.apis === null ? 'all' : connection.apis.join(', '),
      connection.perMonth === null ? 'as the plan' : String(connection.perMonth),
      moment(connection.createdAt),
      moment(connection.lastUsedAt),
      actionButton('End', { 'aria-label': `End ${connection.clientName}` }, async () => {
        const question = `End the connection of ${connection.clientName}? It is refused from the next request on.`
        if (!(await confirmed(question, 'End'))) return
        await api(`/v1/connections/${connection.id}`, { method: 'DELETE' })
        toast('The application is signed out')
        await refresh()
      }),
    ])
    const headings = ['Application', 'Code went to', 'APIs', 'Calls a month', 'Since', 'Last used', 'Action']
    return [table('Connected apps', headings, rows)]
  })
}
