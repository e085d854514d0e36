import { api } from './api.js'
import { el, field } from './dom.js'

const number = new Intl.NumberFormat()

/** What an owner allows a key or an application, in words. */
export function allowedWords({ apis, limits: { perMinute, perMonth, inFlight }, mayWrite }) {
  const words = [
    apis === null ? 'all APIs' : apis.join(', '),
    mayWrite && 'may change data',
    perMinute !== null && `${number.format(perMinute)} a minute`,
    perMonth !== null && `${number.format(perMonth)} a month`,
    inFlight !== null && `${number.format(inFlight)} at once`,
  ]
  return words.filter(Boolean).join('; ')
}

const FIELDS = [
  ['perMinute', 'Maximum calls a minute'],
  ['perMonth', 'Maximum calls a month'],
  ['inFlight', 'Maximum calls at once'],
]

/** Slugs of the APIs that have an endpoint which changes something at its source. */
export const writingApis = (catalog) =>
  catalog.filter(({ endpoints }) => endpoints.some(({ effect }) => effect)).map(({ api_name }) => api_name)

const NAMES_MAX = 5

/**
 * The tick without which a key or an application only reads. It names the APIs at which it counts,
 * and is not shown if there are none; nothing of it is sent then.
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

/** Fields for the same, and what they say. Empty fields allow what the plan allows. */
export async function allowedFields({ apis = null, limits = {}, mayWrite = false } = {}) {
  const writers = writingApis((await api('/v1/catalog')).data)
  const inputs = FIELDS.map(([name, label]) => [
    name,
    label,
    el('input', { type: 'number', min: 1, max: 1_000_000_000, step: 1, inputmode: 'numeric', value: limits[name] }),
  ])
  const slugs = el('input', { value: apis?.join(', '), autocomplete: 'off', spellcheck: 'false', oninput: showTick })
  const { tick, showFor, read: readTick } = writeTick(mayWrite)
  const names = () => slugs.value.split(/[\s,]+/).filter((slug) => slug !== '')
  function showTick() {
    showFor(names().length === 0 ? writers : writers.filter((slug) => names().includes(slug)))
  }
  showTick()
  const fields = el(
    'div',
    { class: 'stack' },
    field('APIs it may call', slugs, 'Names as in the addresses, separated by commas. Leave empty for all.'),
    tick,
    ...inputs.map(([, label, input]) => field(label, input, "Leave empty for your plan's limit.")),
  )
  const read = () => ({
    apis: names().length === 0 ? null : names(),
    limits: Object.fromEntries(
      inputs.map(([name, , input]) => [name, input.value === '' ? null : Number(input.value)]),
    ),
    ...readTick(),
  })
  return { fields, read }
}
