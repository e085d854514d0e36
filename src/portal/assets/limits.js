import { el, field } from './dom.js'

const number = new Intl.NumberFormat()

/** What an owner allows a key or an application, in words. */
export function allowedWords({ apis, limits: { perMinute, perMonth, inFlight } }) {
  const words = [
    apis === null ? 'all APIs' : apis.join(', '),
    perMinute !== null && `${number.format(perMinute)} a minute`,
    perMonth !== null && `${number.format(perMonth)} a month`,
    inFlight !== null && `${number.format(inFlight)} at once`,
  ]
  return words.filter(Boolean).join('; ')
}

const FIELDS = [
  ['perMinute', 'Calls a minute, at most'],
  ['perMonth', 'Calls a month, at most'],
  ['inFlight', 'Calls at once, at most'],
]

/** Fields for the same, and what they say. Empty fields allow what the plan allows. */
export function allowedFields({ apis = null, limits = {} } = {}) {
  const inputs = FIELDS.map(([name, label]) => [
    name,
    label,
    el('input', { type: 'number', min: 1, max: 1_000_000_000, step: 1, inputmode: 'numeric', value: limits[name] }),
  ])
  const slugs = el('input', { value: apis?.join(', '), autocomplete: 'off', spellcheck: 'false' })
  const fields = el(
    'div',
    { class: 'stack' },
    field('APIs it may call', slugs, 'Names as in the addresses, with commas between them. Empty: all.'),
    ...inputs.map(([, label, input]) => field(label, input, 'Empty: as many as the plan allows.')),
  )
  const read = () => {
    const names = slugs.value.split(/[\s,]+/).filter((slug) => slug !== '')
    return {
      apis: names.length === 0 ? null : names,
      limits: Object.fromEntries(
        inputs.map(([name, , input]) => [name, input.value === '' ? null : Number(input.value)]),
      ),
    }
  }
  return { fields, read }
}
