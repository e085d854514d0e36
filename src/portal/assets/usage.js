import { failureCard } from './account-view.js'
import { api, apiReport } from './api.js'
import { dayChart, outcomeOfStatus, shareTable, sumsOf } from './chart.js'
import { el, field, select } from './dom.js'
import { callerWords } from './words.js'

const GROUPS = [
  ['day', 'Day'],
  ['api', 'API'],
  ['key', 'Key or app'],
  ['status', 'Status'],
]
const SPANS = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
]
const DAY_MS = 86_400_000

/** Usage by day, API, caller or status. `callers` gives the names of keys and connections by id. */
export function usageSection(callers) {
  const group = select({ name: 'group' }, GROUPS)
  const span = select({ name: 'span' }, SPANS)
  const chosen = new URLSearchParams(location.search)
  chooseIn(group, chosen.get('group'), 'day')
  chooseIn(span, chosen.get('span'), '30')
  const place = el('div', { 'aria-live': 'polite' })
  let latest
  const show = async () => {
    const reading = read(group.value, Number(span.value), callers).catch(failureCard)
    latest = reading
    const shown = await reading
    // Another choice was made meanwhile.
    if (reading === latest) place.replaceChildren(shown)
  }
  const change = () => {
    const query = new URLSearchParams({ group: group.value, span: span.value })
    history.replaceState(history.state, '', `${location.pathname}?${query}`)
    show()
  }
  group.addEventListener('change', change)
  span.addEventListener('change', change)
  show()
  return el(
    'section',
    { class: 'card' },
    el('h2', {}, 'Usage'),
    el('div', { class: 'inline' }, field('Show by', group), field('Last', span)),
    place,
  )
}

/** Selects the values of the address. Missing or invalid values get their defaults. */
function chooseIn(field, value, usual) {
  field.value = [...field.options].some((option) => option.value === value) ? value : usual
}

async function read(group, days, callers) {
  const from = new Date(Date.now() - (days - 1) * DAY_MS).toISOString().slice(0, 10)
  if (group === 'day') {
    const query = new URLSearchParams({ from, groupBy: 'day,mode,status' })
    const [usage, billing] = await Promise.all([apiReport(`/v1/usage?${query}`, 'usage'), api('/v1/billing/status')])
    return dayChart(usage, billing.limits.perMonth)
  }
  const groupBy = [...new Set([group, 'mode', 'status'])].join()
  const { usage } = await apiReport(`/v1/usage?${new URLSearchParams({ from, groupBy })}`, 'usage')
  const [, label] = GROUPS.find(([name]) => name === group)
  const lines = Map.groupBy(usage, (line) => nameOf(line, group, callers))
  return shareTable(
    label,
    [...lines].map(([name, parts]) => ({ name, ...sumsOf(parts) })),
  )
}

function nameOf(line, group, callers) {
  const value = String(line[group])
  if (group === 'status') return `${value} ${value === '499' ? 'cancelled' : outcomeOfStatus(line.status)}`
  if (group === 'api' && value === '-') return 'Not in the catalog, or free calls of days with many keys or APIs'
  return group === 'key' ? callerWords(value, callers) : value
}
