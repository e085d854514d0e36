import { api } from './api.js'
import { el, field } from './dom.js'

const number = new Intl.NumberFormat()

/** The restrictions of a key or an application, in words. Line breaks are allowed anywhere. */
export function allowedWords({ apis, addresses, limits: { perMinute, perMonth, inFlight }, mayWrite }) {
  const words = [
    apis === null ? 'all APIs' : apis.join(', '),
    addresses !== null && `only from ${addresses.join(', ')}`,
    mayWrite && 'may change data',
    perMinute !== null && `${number.format(perMinute)} a minute`,
    perMonth !== null && `${number.format(perMonth)} a month`,
    inFlight !== null && `${number.format(inFlight)} at once`,
  ]
  // A break is allowed here, because an IPv6 address is wider than a phone's column.
  return el('span', { class: 'allowed' }, words.filter(Boolean).join('; '))
}

const FIELDS = [
  ['perMinute', 'Maximum calls a minute'],
  ['perMonth', 'Maximum calls a month'],
  ['inFlight', 'Maximum calls at once'],
]

/** Slugs of the APIs with an endpoint that changes something at its source. */
export const writingApis = (catalog) =>
  catalog.filter(({ endpoints }) => endpoints.some(({ effect }) => effect)).map(({ api_name }) => api_name)

const NAMES_MAX = 5

/**
 * The checkbox that allows writing. It names the APIs for which it matters. If there are none, it
 * is hidden and nothing is sent.
 */
export function writeTick(isTicked = false) {
  const input = el('input', { type: 'checkbox', checked: isTicked })
  const words = el('span')
  const tick = el('label', { class: 'choice', hidden: true }, input, words)
  const showFor = (slugs) => {
    const named = slugs.slice(0, NAMES_MAX).join(', ')
    const others = slugs.length > NAMES_MAX ? ` and ${slugs.length - NAMES_MAX} more` : ''
    tick.hidden = slugs.length === 0
    words.textContent = `It may change data at ${named}${others}`
  }
  return { tick, showFor, read: () => (tick.hidden ? {} : { mayWrite: input.checked }) }
}

/** The items in a field; null if it is empty. */
function listed({ value }) {
  const items = value.split(/[\s,]+/).filter((item) => item !== '')
  return items.length === 0 ? null : items
}

/**
 * Fields for the same restrictions, and their values. An empty field means the limit of the plan.
 */
export async function allowedFields({ apis = null, addresses = null, limits = {}, mayWrite = false } = {}) {
  const writers = writingApis((await api('/v1/catalog')).data)
  const inputs = FIELDS.map(([name, label]) => [
    name,
    label,
    el('input', { type: 'number', min: 1, max: 1_000_000_000, step: 1, inputmode: 'numeric', value: limits[name] }),
  ])
  const list = (items) => ({ value: items?.join(', '), autocomplete: 'off', spellcheck: 'false' })
  const slugs = el('input', { ...list(apis), oninput: showTick })
  const networks = el('input', list(addresses))
  const { tick, showFor, read: readTick } = writeTick(mayWrite)
  function showTick() {
    const chosen = listed(slugs)
    showFor(chosen === null ? writers : writers.filter((slug) => chosen.includes(slug)))
  }
  showTick()
  const fields = el(
    'div',
    { class: 'stack' },
    field('APIs that it may call', slugs, 'Names as in the addresses, separated by commas. Leave empty for all.'),
    tick,
    field(
      'Addresses from which it may be used',
      networks,
      'IPv4 or IPv6, or networks such as 203.0.113.0/24, separated by commas. Leave empty for everywhere.',
    ),
    ...inputs.map(([, label, input]) => field(label, input, "Leave empty for your plan's limit.")),
  )
  const read = () => ({
    apis: listed(slugs),
    addresses: listed(networks),
    limits: Object.fromEntries(
      inputs.map(([name, , input]) => [name, input.value === '' ? null : Number(input.value)]),
    ),
    ...readTick(),
  })
  return { fields, read }
}
