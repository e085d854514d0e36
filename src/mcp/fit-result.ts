import Type, { type Static } from 'typebox'
import { isObject } from '../catalog/json.ts'

/**
 * Longest answer of a tool, characters of its JSON: clients put longer answers into a file that the
 * model does not read.
 */
export const RESULT_CHARACTERS_MAX = 40_000

/** Room for what is said of a cut, characters. */
const TRUNCATED_CHARACTERS = 600

const HINT_CHARACTERS_MAX = 350
const PATH_CHARACTERS_MAX = 120

/** Fields that a hint names. */
const HINTED_MAX = 6

/** A longer member is not one to ask for, characters. */
const HINTED_CHARACTERS_MAX = 200

export const Truncated = Type.Object(
  {
    /** The list, text or object that was cut, and its items, characters or members in all. */
    path: Type.String(),
    of: Type.Integer(),
    shown: Type.Integer(),
    hint: Type.String(),
  },
  { description: 'Present if the data were too long and were cut' },
)
export type Truncated = Static<typeof Truncated>

interface Cut extends Pick<Truncated, 'path' | 'of' | 'shown'> {
  removed: number
  /** Of a list: what its items look like. */
  item?: unknown
}

/**
 * Cuts data to a length. Lists lose items from their end, the longest list first. When that is not
 * enough, texts lose their end, and objects their last members.
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
  // Names can be longer than all that may be said.
  if (fitted.size + measure(truncated).size > charactersMax) {
    return { data: {}, truncated: { path: '', of: Object.keys(data).length, shown: 0, hint: ASK_FOR_LESS } }
  }
  return { data: fitted.value as Record<string, unknown>, truncated }
}

/**
 * One bound for answers of these lengths: the longest that each may be. What an answer does not
 * need goes to the others.
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
  /** Whether a list is within that has an item to lose. */
  hasList: boolean
  /** Items of a list, members of an object. */
  parts: [name: string, part: Measured][]
}

/** One pass over the data; every later step reads the lengths from here. */
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

/** Texts in which no character needs an escape are counted without writing them. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'string') return String(value).length
  return ESCAPED.test(value) ? JSON.stringify(value).length : value.length + 2
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

const nameSize = (name: string): number => sizeOf(name) + 1

interface Cutting {
  path: string
  /** Whether texts and objects stay as they are. */
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

/** Keeps the items that fit; of the first at least a part. */
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

/** Members that cannot become shorter stay; the others share the rest. */
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

/** Room for one member of an object that is cut, characters. */
const MEMBER_CHARACTERS_MIN = 40

function shortenText(text: string, sizeMax: number, { path, cuts }: Cutting): string {
  let shorter = text.slice(0, Math.max(0, sizeMax - 3))
  // Escapes take more characters than they stand for.
  for (let size = sizeOf(shorter) + 1; size > sizeMax && shorter !== ''; size = sizeOf(shorter) + 1) {
    shorter = shorter.slice(0, Math.min(shorter.length - 1, Math.floor((shorter.length * sizeMax) / size)))
  }
  cuts.push({ path, of: text.length, shown: shorter.length, removed: text.length - shorter.length })
  return `${shorter.toWellFormed()}…`
}

const ASK_FOR_LESS = 'Ask for less with fields, or by the parameters of the call.'

function toTruncated(cuts: Cut[]): Truncated {
  const [most, ...others] = [...cuts].sort((a, b) => b.removed - a.removed)
  if (!most) return { path: '', of: 0, shown: 0, hint: ASK_FOR_LESS }
  const { path, of, shown, item } = most
  const also = [...new Set(others.map((cut) => cut.path))].filter((other) => other !== path).slice(0, HINTED_MAX)
  const alsoWords = also.length === 0 ? '' : ` Shortened as well: ${also.join(', ')}.`
  return {
    path: path.slice(0, PATH_CHARACTERS_MAX),
    of,
    shown,
    hint: `${hintFor(path, item)}${alsoWords}`.slice(0, HINT_CHARACTERS_MAX),
  }
}

/** Names short members of an item: with these alone more items fit. */
function hintFor(path: string, item: unknown): string {
  if (!isObject(item)) return ASK_FOR_LESS
  const short = Object.entries(item).filter(([, value]) => measure(value).size <= HINTED_CHARACTERS_MAX)
  const fields = short.slice(0, HINTED_MAX).map(([name]) => `${path}[].${name}`)
  return fields.length === 0 ? ASK_FOR_LESS : `Ask for fewer fields, such as ${fields.join(', ')}.`
}
