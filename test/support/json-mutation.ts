import fc from 'fast-check'

type Path = (string | number)[]

/**
 * Makes one to four changes at random places of a value: a member is removed, added, null, or of
 * another type.
 */
export function mutated(value: unknown): fc.Arbitrary<unknown> {
  const change = fc.record({
    at: fc.nat(),
    kind: fc.constantFrom('missing', 'null', 'wrong', 'wrong', 'extra'),
    name: fc.oneof(fc.constantFrom('error', 'message', '__proto__', 'constructor', 'length', '0'), fc.string()),
    odd: oddValue,
  })
  return fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) =>
    changes.reduce<unknown>((current, { at, kind, name, odd }) => {
      const places = pathsOf(current)
      const path = places[at % places.length] ?? []
      if (kind === 'missing') return without(current, path)
      return replaced(current, path, (old) => (kind === 'null' ? null : kind === 'wrong' ? odd : grown(old, name, odd)))
    }, value),
  )
}

/**
 * Values on which mappings fail: other types, and texts and numbers that parsers and dates refuse.
 */
const oddValue = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom<unknown>(
    '',
    ' ',
    'NaN',
    '1e999',
    '-',
    '2026-02-30',
    '2026-13-45T99:99:99Z',
    '&#x110000;&amp',
    '<a <b>',
    '%',
    'https://',
    '\ud800',
    0,
    -0,
    -1,
    0.5,
    2 ** 53,
    8.64e15 + 1,
    1e308,
    5e-324,
    true,
    false,
    [],
    [null],
    [[]],
    [{}],
    {},
    { toString: 1, valueOf: 1, toJSON: 1 },
    { length: 4_294_967_296 },
  ),
)

/** Every place in a value, its root first. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  return [path, ...entriesOf(value).flatMap(([key, member]) => pathsOf(member, [...path, key]))]
}

function entriesOf(value: unknown): [string | number, unknown][] {
  if (Array.isArray(value)) return value.map((item, index) => [index, item])
  return typeof value === 'object' && value !== null ? Object.entries(value) : []
}

function replaced(value: unknown, [key, ...rest]: Path, change: (old: unknown) => unknown): unknown {
  if (key === undefined) return change(value)
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? replaced(item, rest, change) : item))
  // Built from entries, so that a member named __proto__ stays a member.
  return Object.fromEntries(
    entriesOf(value).map(([name, member]) => [name, name === key ? replaced(member, rest, change) : member]),
  )
}

function without(value: unknown, path: Path): unknown {
  const key = path.at(-1)
  if (key === undefined) return undefined
  return replaced(value, path.slice(0, -1), (parent) =>
    Array.isArray(parent)
      ? parent.filter((_, index) => index !== key)
      : Object.fromEntries(entriesOf(parent).filter(([name]) => name !== key)),
  )
}

function grown(value: unknown, name: string, member: unknown): unknown {
  if (Array.isArray(value)) return [...value, member]
  return Object.fromEntries([...entriesOf(value), [name, member]])
}
