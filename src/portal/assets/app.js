import { startCall, startCalls } from './calls.js'
import { startCatalog } from './catalog.js'
import { copyCode, startCodes, startTabs } from './code.js'
import { startConnect } from './connect.js'
import { startConnections } from './connections.js'
import { startCredentials } from './credentials.js'
import { localizeMoments, toast } from './dom.js'
import { startErrors } from './errors.js'
import { startKeys } from './keys.js'
import { startNavigation, visit } from './navigate.js'
import { startOverview } from './overview.js'
import { startProviderKeys } from './provider-keys.js'
import { startReference } from './reference.js'
import { announceSession, endSession, followSession } from './session.js'
import { startSettings } from './settings.js'
import { startTeams } from './teams.js'
import { startApiPage } from './try-it.js'
import { forPeople } from './words.js'

const VIEWS = {
  catalog: startCatalog,
  api: startApiPage,
  credentials: startCredentials,
  'signed-in': announceSession,
  overview: startOverview,
  keys: startKeys,
  calls: startCalls,
  call: startCall,
  teams: startTeams,
  'provider-keys': startProviderKeys,
  settings: startSettings,
  reference: startReference,
  errors: startErrors,
  connect: startConnect,
  connections: startConnections,
}

function startPage() {
  startCodes(document)
  /** @type {NodeListOf<HTMLElement>} */
  const views = document.querySelectorAll('[data-view]')
  for (const view of views) VIEWS[view.dataset.view]?.(view)
  for (const group of document.querySelectorAll('[data-tabs]')) startTabs(group)
  localizeMoments(document)
}

document.addEventListener('click', async ({ target }) => {
  if (!(target instanceof Element)) return
  const copy = target.closest('[data-copy]')
  if (copy) await copyCode(copy)
  if (target.closest('[data-logout]')) {
    try {
      await endSession()
    } catch (error) {
      return toast(`You are still logged in. ${forPeople(error)}`)
    }
    await visit('/')
  }
})

// `/` moves the focus to the search field, as in other documentation. In a field it is an ordinary
// character.
document.addEventListener('keydown', (event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented
  const isInField =
    event.target instanceof Element && event.target.closest('input, textarea, select, [contenteditable]')
  if (event.key !== '/' || !isPlain || isInField) return
  /** @type {HTMLInputElement | null} */
  const search = document.querySelector('main input[type=search]')
  if (!search) return
  event.preventDefault()
  search.focus()
  search.select()
})

startNavigation(startPage)
followSession()
startPage()
