import { durationWords, timingBar } from '../../browser/timing-bar.js'
import { actionButton, actionForm, download, showAccount, table } from './account-view.js'
import { ApiError, api, apiAll, apiPage } from './api.js'
import { el, field, momentOfLog, select } from './dom.js'
import { visit } from './navigate.js'

const PAGE = 50

/**
 * Filters of the list. The address has them under these names, which are the names of the log's
 * route.
 */
const FILTERS = ['api', 'status', 'key', 'mode', 'via', 'code', 'endpoint', 'tool', 'from', 'to', 'teamId']

const STATUSES = [
  ['', 'all'],
  ['2xx', 'answered'],
  ['4xx', 'refused (4xx)'],
  ['5xx', 'failed (5xx)'],
]
const MODES = [
  ['', 'all'],
  ['live', 'live'],
  ['test', 'test'],
]
const VIAS = [
  ['', 'all'],
  ['call', 'a call'],
  ['batch', 'a batch'],
  ['mcp', 'MCP'],
]

/** The account's calls of the last days, newest first. */
export function startCalls(view) {
  return showAccount(view, async () => {
    const given = new URLSearchParams(location.search)
    const filter = new URLSearchParams(FILTERS.filter((name) => given.get(name)).map((name) => [name, given.get(name)]))
    const query = new URLSearchParams({ ...Object.fromEntries(filter), limit: String(PAGE) })
    if (given.has('cursor')) query.set('cursor', given.get('cursor'))
    const [{ data, next: address }, callers] = await Promise.all([apiPage(`/v1/logs?${query}`), readCallers()])
    const { calls } = data
    const next = address && new URL(address, location.href).searchParams.get('cursor')
    return [
      findForm(),
      filterForm(filter, callers),
      calls.length > 0 ? callTable(calls) : noCalls(next, filter),
      pageLinks({ next, filter, isFirst: !given.has('cursor'), isEmpty: calls.length === 0 }),
    ]
  })
}

/** Names of keys and applications for the filter. Without them the filter is left out. */
async function readCallers() {
  try {
    const [{ keys }, { connections }] = await Promise.all([apiAll('/v1/keys'), api('/v1/connections')])
    return [
      ...keys.map((key) => [key.id, `${key.label ?? 'No label'} (…${key.lastFour ?? ''})`]),
      ...connections.map(({ id, clientName }) => [id, clientName]),
      ['session', 'Portal and sessions'],
    ]
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error
    return []
  }
}

function findForm() {
  const id = el('input', { name: 'id', required: true, autocomplete: 'off', spellcheck: 'false', maxlength: 60 })
  id.pattern = '\\s*(call|req)_[0-9a-fA-F]{32}\\s*'
  id.title = 'call_… or req_… with 32 digits'
  return actionForm(
    { class: 'inline card', role: 'search' },
    async ({ id: text }) => {
      const { call, calls } = await api(`/v1/logs/${encodeURIComponent(text.trim())}`)
      await visit(`/account/calls/${(call ?? calls[0]).id}`)
    },
    field('X-Call-Id or X-Request-Id', id),
    el('button', { class: 'button', type: 'submit' }, 'Find'),
  )
}

function filterForm(filter, callers) {
  const chosen = (name, options) => {
    const control = select({ name }, options)
    control.value = filter.get(name) ?? ''
    return control
  }
  const slug = el('input', { name: 'api', value: filter.get('api') ?? '', placeholder: 'weather', autocomplete: 'off' })
  const form = actionForm(
    { class: 'inline' },
    async (chosenFilter, { elements }) => {
      // The form has no field for the other filters of the address, such as the team, so they stay.
      const others = [...filter].filter(([name]) => elements[name] === undefined)
      await visit(`/account/calls?${new URLSearchParams([...others, ...Object.entries(chosenFilter)])}`)
    },
    field('API', slug),
    field('Status', chosen('status', STATUSES)),
    field('Mode', chosen('mode', MODES)),
    field('Came by', chosen('via', VIAS)),
    callers.length > 0 && field('Key or app', chosen('key', [['', 'all'], ...callers])),
    el('button', { class: 'button quiet', type: 'submit' }, 'Filter'),
  )
  return el('details', { open: filter.size > 0 }, el('summary', {}, 'Filter'), form)
}

function callTable(calls) {
  const rows = calls.map((call) => [
    el('a', { href: `/account/calls/${call.id}` }, momentOfLog(call.at)),
    el('span', {}, nameOf(call)),
    el('div', {}, statusWords(call), call.cause !== null && el('div', { class: 'small' }, call.cause)),
    durationWords(call.totalMs),
    call.queueMs === null ? '–' : durationWords(call.queueMs + call.permitMs),
    el('span', { class: `badge ${call.mode}` }, call.mode),
    cameBy(call),
  ])
  const heads = ['Ended', 'API', 'Answer', 'Took', 'Waited', 'Mode', 'Came by']
  // On a phone the values stand beside each other, because most need no heading.
  return el('div', { class: 'brief' }, table('Calls', heads, rows))
}

const nameOf = ({ api: slug, endpoint }) => (slug === '-' ? 'API not in the catalog' : `${slug}${endpoint ?? ''}`)

function statusWords({ status, code, cache }) {
  const stored = cache === 'hit' ? ' stored' : ''
  return el('span', { class: status < 400 ? undefined : 'bad' }, `${status}${code === null ? stored : ` ${code}`}`)
}

const cameBy = ({ via, tool }) => (via === 'mcp' ? `MCP${tool ? `, ${tool}` : ''}` : via === 'batch' ? 'batch' : 'call')

function noCalls(next, filter) {
  const text = next
    ? 'None of the calls searched so far matches. Look further back.'
    : filter.size > 0
      ? 'No call matches.'
      : 'The log has no calls of your account yet. A call appears about a second after its end.'
  return el('p', { class: 'empty' }, text)
}

function pageLinks({ next, filter, isFirst, isEmpty }) {
  const to = (cursor) =>
    `/account/calls?${new URLSearchParams({ ...Object.fromEntries(filter), ...(cursor && { cursor }) })}`
  return el(
    'p',
    { class: 'actions' },
    !isFirst && el('a', { class: 'button quiet', href: to() }, 'Newest calls'),
    next && el('a', { class: 'button quiet', href: to(next) }, 'Older calls'),
    !isEmpty &&
      actionButton('Export', { 'aria-label': 'Export these calls as lines of JSON' }, () =>
        download(`/v1/logs?${filter}`, { name: 'calls.ndjson', type: 'application/x-ndjson' }),
      ),
  )
}

/** One call: its outcome, and the parts of its time. */
export function startCall(view) {
  return showAccount(view, async () => {
    const id = location.pathname.split('/').at(-1) ?? ''
    const { call, calls } = await api(`/v1/logs/${id}`)
    return callParts(call ?? calls[0])
  })
}

function callParts(call) {
  const facts = [
    ['Ended', momentOfLog(call.at)],
    ['Answer', statusWords(call)],
    ['Cause', call.cause],
    ['API', call.api === '-' ? nameOf(call) : el('a', { href: `/apis/${call.api}` }, nameOf(call))],
    ['Made by', madeBy(call)],
    ['Came by', cameBy(call)],
    ['Mode', call.mode],
    ['Attempts', call.attempts],
    ['Stored answer', call.cache],
    ['Length', call.bytes === null ? null : `${call.bytes} bytes`],
    ['Call id', el('code', {}, call.id)],
    ['Request id', call.requestId === null ? null : el('code', {}, call.requestId)],
  ].filter(([, value]) => value !== null)
  const picture = el('section', { class: 'card' }, el('h2', {}, `Took ${durationWords(call.totalMs)}`))
  // Only numbers and our own words are inserted as HTML.
  picture.insertAdjacentHTML('beforeend', timingBar(call))
  return [
    picture,
    el(
      'section',
      { class: 'card' },
      el('h2', {}, 'The call'),
      el(
        'dl',
        { class: 'facts' },
        ...facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
      ),
      call.code !== null &&
        el('p', {}, el('a', { href: `/docs/errors#${call.code}` }, `What to do about ${call.code}`)),
    ),
    el('p', {}, el('a', { href: '/account/calls' }, 'All calls')),
  ]
}

function madeBy({ key }) {
  if (key === null) return 'a session'
  if (key.application !== null) return key.application
  if (key.lastFour === null) return 'a key that has been deleted'
  return `${key.label ?? 'a key without a label'} (…${key.lastFour})`
}
