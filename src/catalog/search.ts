import type { Api } from './catalog.ts'
import { isWithin, lettersOf, mayBeWithin } from './nearest-name.ts'

/** Words that say nothing of what is sought. */
const EMPTY_WORDS = new Set(
  'a about all an and any api apis are as at be by can could current data do does every fetch find for from get give has have how i in is it its latest list live look lookup me my near need now of on one or please right show some tell than that the their there this to today tomorrow up us want was what whats when where which will with would you your'.split(
    ' ',
  ),
)

/** What a word is worth by its place. */
const WEIGHTS = { name: 5, tag: 4, keyword: 4, category: 3, description: 2, parameter: 1 }

/** What the start of a word, and a word with a typing error, are worth beside the word itself. */
const STEM_PART = 0.8
const TYPO_PART = 0.5

/**
 * Words of a query that count: anybody may search, and each word that no API has is compared with
 * all words.
 */
const WORDS_MAX = 8

/** An API that is worth less than this part of the best API is not what was sought. */
const SHARE_OF_BEST_MIN = 0.25

/**
 * APIs that fit a query in everyday words, the best first; all of them, in their order, for a query
 * without words. The one search of the portal, the catalog and MCP. A word counts by where it
 * stands and by how few APIs have it (Spärck Jones, 1972), at the start of a word alone: `rate` is
 * not in `temperature`. A word that no API has is taken for the nearest one with a typing error.
 */
export function rankApis(apis: Api[], query: string): Api[] {
  const words = [...new Set(wordsOf(query))].filter((word) => !EMPTY_WORDS.has(word)).slice(0, WORDS_MAX)
  if (words.length === 0) return apis
  const indexed = apis.map((api) => ({ api, index: indexOf(api), score: 0 }))
  for (const word of words) {
    const weights = weigh(indexed, word, weightOfWord)
    const found = weights.some((weight) => weight > 0) ? weights : weigh(indexed, word, weightOfTypo)
    const rarity = Math.log(1 + apis.length / Math.max(1, found.filter((weight) => weight > 0).length))
    for (const [position, entry] of indexed.entries()) entry.score += (found[position] ?? 0) * rarity
  }
  const best = Math.max(...indexed.map(({ score }) => score))
  const fitting = indexed.filter(({ score }) => score > 0 && score >= best * SHARE_OF_BEST_MIN)
  return fitting.sort((a, b) => b.score - a.score).map(({ api }) => api)
}

/** Each word of an API's description with the most it is worth. */
type Index = ReadonlyMap<string, { weight: number; letters: number }>

function weigh(indexed: { index: Index }[], word: string, weightOf: (index: Index, word: string) => number): number[] {
  return indexed.map(({ index }) => weightOf(index, word))
}

/** Words of an upstream's file do not change while a process runs. */
const indexes = new WeakMap<Api['upstream'], Index>()

function indexOf({ slug, upstream, endpoints }: Api): Index {
  const known = indexes.get(upstream)
  if (known) return known
  const index = new Map<string, { weight: number; letters: number }>()
  const add = (text: string, weight: number) => {
    for (const word of wordsOf(text)) {
      const best = Math.max(index.get(word)?.weight ?? 0, weight)
      index.set(word, { weight: best, letters: lettersOf(word) })
    }
  }
  add(`${slug} ${upstream.displayName}`, WEIGHTS.name)
  add(upstream.tags.join(' '), WEIGHTS.tag)
  add((upstream.keywords ?? []).join(' '), WEIGHTS.keyword)
  add(upstream.category, WEIGHTS.category)
  add(upstream.description, WEIGHTS.description)
  for (const { path, endpoint, parameters } of endpoints.values()) {
    add(`${path} ${endpoint.description}`, WEIGHTS.description)
    for (const { name, schema } of parameters) add(`${name} ${schema.description ?? ''}`, WEIGHTS.parameter)
  }
  indexes.set(upstream, index)
  return index
}

function weightOfWord(index: Index, word: string): number {
  const exact = index.get(word)?.weight ?? 0
  if (word.length < 4) return exact
  let best = exact
  for (const [candidate, { weight }] of index) {
    const isStem = candidate.length >= 4 && (candidate.startsWith(word) || word.startsWith(candidate))
    if (isStem) best = Math.max(best, weight * STEM_PART)
  }
  return best
}

function weightOfTypo(index: Index, word: string): number {
  const errorsMax = word.length < 4 ? 0 : word.length < 8 ? 1 : 2
  if (errorsMax === 0) return 0
  const given = lettersOf(word)
  let best = 0
  for (const [candidate, { weight, letters }] of index) {
    if (candidate.length < 4 || !mayBeWithin(errorsMax, given, letters)) continue
    if (isWithin(errorsMax, word, candidate)) best = Math.max(best, weight * TYPO_PART)
  }
  return best
}

/** Ends as a plural does and is none: its stem would be found in New York. */
const SINGULAR = new Set(['news'])

/** Lower-case words without the endings of plurals. */
function wordsOf(text: string): string[] {
  const words =
    text
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/[’']s\b/g, '')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  return words.map((word) =>
    word.length > 3 && !SINGULAR.has(word) ? word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1') : word,
  )
}
