import Type, { type Static } from 'typebox'
import { isObject } from '../catalog/json.ts'

/**
 * Longest result of a tool, characters of its JSON. Clients write longer results to a file that the
 * model does not read.
 */
export const RESULT_CHARACTERS_MAX = 40_000

/** Characters that are reserved for the words about what was cut. */
const TRUNCATED_CHARACTERS = 600

const HINT_CHARACTERS_MAX = 350
const PATH_CHARACTERS_MAX = 120

/** Most fields that a hint names. */
const HINTED_MAX = 6

/** Longest member that a hint suggests to request, characters. */
const HINTED_CHARACTERS_MAX = 200

export const Truncated = Type.Object(
  {
    /**
     * The list, text or object that was cut, and its full number of items, characters or members.
     */
    path: Type.String(),
    of: Type.Integer(),
    shown: Type.Integer(),
    hint: Type.String(),
  },
  { description: 'Present if the data was too long and was cut' },
)
export type Truncated = Static<typeof Truncated>

interface Cut extends Pick<Truncated, 'path' | 'of' | 'shown'> {
  removed: number
  /** For a list: an example of its items. */
  item?: unknown
}

/**
 * Cuts data to a length. First lists lose items at their end, the longest list first. If that is
 * not enough, texts lose their end, and objects their last members.
 */
export function fitData(
  data: Record<string, unknown>,
  charactersMax: number,
): { data: Record<string, unknown>; truncated?: Truncated } {
  const whole = measure(data)
  if (whole.size <= charactersMax) return { data }
  const budget = Math.max(0, charactersMax - TRUNCATED_CHARACTERS)
  const cuts: Cut[] = []
  let fitted = measure(shorten(whole, budget, { path: '', isListsAlone: true, cuts }))
  if (fitted.size > budget) fitted = measure(shorten(fitted, budget, { path: '', isListsAlone: false, cuts }))
  const truncated = toTruncated(cuts)
  // Names of members can be longer than the whole limit.
  if (fitted.size + measure(truncated).size > charactersMax) {
    return { data: {}, truncated: { path: '', of: Object.keys(data).length, shown: 0, hint: ASK_FOR_LESS } }
  }
  return { data: fitted.value as Record<string, unknown>, truncated }
}

/**
 * The length limit of each answer, if answers of these lengths share one limit. What a short answer
 * does not use is given to the others.
 */
export function shareOf(lengths: number[], charactersMax: number): number {
  const sorted = [...lengths].sort((a, b) => a - b)
  let left = charactersMax
  for (const [index, length] of sorted.entries()) {
    const part = left / (sorted.length - index)
    if (length > part) return Math.max(0, Math.floor(part))
    left -= length
  }
  return charactersMax
}

/** A value with the length of its JSON. */
interface Measured {
  value: unknown
  size: number
  /** Whether it contains a list that can lose an item. */
  hasList: boolean
  /** The items of a list or the members of an object. */
  parts: [name: string, part: Measured][]
}

/** Measures all data once. All later steps read the lengths from the result. */
function measure(value: unknown): Measured {
  const isList = Array.isArray(value)
  if (!isList && !isObject(value)) return { value, size: sizeOf(value), hasList: false, parts: [] }
  const parts: Measured['parts'] = isList
    ? value.map((item) => ['', measure(item)])
    : Object.entries(value).map(([name, part]) => [name, measure(part)])
  let size = 1 + Math.max(1, parts.length)
  let hasList = isList && parts.length > 1
  for (const [name, part] of parts) {
    size += part.size + (isList ? 0 : nameSize(name))
    hasList ||= part.hasList
  }
  return { value, size, hasList, parts }
}

/** Length of a value as JSON. Texts without escapes are counted without writing them. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'string') return String(value).length
  return ESCAPED.test(value) ? JSON.stringify(value).length : value.length + 2
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

const nameSize = (name: string): number => sizeOf(name) + 1

interface Cutting {
  path: string
  /** Whether only lists are cut. */
  isListsAlone: boolean
  cuts: Cut[]
}

function shorten(measured: Measured, sizeMax: number, cutting: Cutting): unknown {
  const { value, size, hasList } = measured
  if (size <= sizeMax || (cutting.isListsAlone && !hasList)) return value
  if (Array.isArray(value)) return shortenList(measured, sizeMax, cutting)
  if (isObject(value)) return shortenObject(measured, sizeMax, cutting)
  return typeof value === 'string' ? shortenText(value, sizeMax, cutting) : value
}

/** Keeps the items that fit, and at least a part of the first item. */
function shortenList({ parts, size }: Measured, sizeMax: number, cutting: Cutting): unknown[] {
  const { path, cuts } = cutting
  let kept = 2
  let shown = 0
  for (const [, item] of parts) {
    if (kept + item.size + 1 > sizeMax) break
    kept += item.size + 1
    shown += 1
  }
  const items = parts.slice(0, Math.max(1, shown)).map(([, item]) => item)
  if (items.length < parts.length) {
    const item = items[0]?.value
    cuts.push({ path, of: parts.length, shown: items.length, removed: size - kept, item })
  }
  return items.map((item) => (shown > 0 ? item.value : shorten(item, sizeMax - 2, { ...cutting, path: `${path}[]` })))
}

/** Members that cannot become shorter stay. The others share the remaining length. */
function shortenObject(
  { parts, size }: Measured,
  sizeMax: number,
  { path, isListsAlone, cuts }: Cutting,
): Record<string, unknown> {
  const membersMax = isListsAlone ? parts.length : Math.max(1, Math.floor(sizeMax / MEMBER_CHARACTERS_MIN))
  const kept = parts.slice(0, membersMax)
  if (kept.length < parts.length) cuts.push({ path, of: parts.length, shown: kept.length, removed: size - sizeMax })
  const isFlexible = (part: Measured) => part.hasList || !isListsAlone
  const names = kept.reduce((sum, [name]) => sum + nameSize(name) + 1, 1)
  const fixed = kept.reduce((sum, [, part]) => sum + (isFlexible(part) ? 0 : part.size), 0)
  const flexible = kept.flatMap(([, part]) => (isFlexible(part) ? [part.size] : []))
  const share = shareOf(flexible, sizeMax - names - fixed)
  return Object.fromEntries(
    kept.map(([name, part]) => {
      const inner = path === '' ? name : `${path}.${name}`
      return [name, shorten(part, share, { path: inner, isListsAlone, cuts })]
    }),
  )
}

/** Characters reserved for each member of an object that is cut. */
const MEMBER_CHARACTERS_MIN = 40

function shortenText(text: string, sizeMax: number, { path, cuts }: Cutting): string {
  let shorter = text.slice(0, Math.max(0, sizeMax - 3))
  // Escapes are longer than the characters for which they stand.
  for (let size = sizeOf(shorter) + 1; size > sizeMax && shorter !== ''; size = sizeOf(shorter) + 1) {
    shorter = shorter.slice(0, Math.min(shorter.length - 1, Math.floor((shorter.length * sizeMax) / size)))
  }
  cuts.push({ path, of: text.length, shown: shorter.length, removed: text.length - shorter.length })
  return `${shorter.toWellFormed()}…`
}

const ASK_FOR_LESS = 'Request less data with fields, or with the parameters of the call.'

function toTruncated(cuts: Cut[]): Truncated {
  const [most, ...others] = [...cuts].sort((a, b) => b.removed - a.removed)
  if (!most) return { path: '', of: 0, shown: 0, hint: ASK_FOR_LESS }
  const { path, of, shown, item } = most
  const also = [...new Set(others.map((cut) => cut.path))].filter((other) => other !== path).slice(0, HINTED_MAX)
  const alsoWords = also.length === 0 ? '' : ` Also shortened: ${also.join(', ')}.`
  return {
    path: path.slice(0, PATH_CHARACTERS_MAX),
    of,
    shown,
    hint: `${hintFor(path, item)}${alsoWords}`.slice(0, HINT_CHARACTERS_MAX),
  }
}

/** A hint that names short members of an item: with only these, more items fit. */
function hintFor(path: string, item: unknown): string {
  if (!isObject(item)) return ASK_FOR_LESS
  const short = Object.entries(item).filter(([, value]) => measure(value).size <= HINTED_CHARACTERS_MAX)
  const fields = short.slice(0, HINTED_MAX).map(([name]) => `${path}[].${name}`)
  return fields.length === 0 ? ASK_FOR_LESS : `Request fewer fields, such as ${fields.join(', ')}.`
}
