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

/**
 * Characters of a query that are read. A letter in its compatibility form can become eighteen
 * letters, so half a megabyte would take 300 ms.
 */
const QUERY_LENGTH_MAX = 400

/** An API that is worth less than this part of the best API is not what was sought. */
const SHARE_OF_BEST_MIN = 0.25

/**
 * APIs that fit a query in everyday words, the best first; all of them, in their order, for a query
 * without words. The one search of the portal, the catalog and MCP.
 */
export function rankApis(apis: Api[], query: string): Api[] {
  return rankByWords(apis, query, indexOfApi) ?? apis
}

/**
 * The items that fit a query, the best first; undefined for a query without words. A word counts by
 * where it stands and by how few items have it (Spärck Jones, 1972), at the start of a word alone:
 * `rate` is not in `temperature`. A word that no item has is taken for the nearest one with a
 * typing error. The work is bounded by the words of the items: a query has at most eight that
 * count.
 */
export function rankByWords<Item>(
  items: readonly Item[],
  query: string,
  indexOf: (item: Item) => WordIndex,
): Item[] | undefined {
  const words = queryWords(query)
  if (words.length === 0) return undefined
  const indexed = items.map((item) => ({ item, index: indexOf(item), score: 0 }))
  for (const word of words) {
    const found = weightsOf(indexed, word)
    const rarity = Math.log(1 + items.length / Math.max(1, found.filter((weight) => weight > 0).length))
    for (const [position, entry] of indexed.entries()) entry.score += (found[position] ?? 0) * rarity
  }
  const best = Math.max(...indexed.map(({ score }) => score))
  const fitting = indexed.filter(({ score }) => score > 0 && score >= best * SHARE_OF_BEST_MIN)
  return fitting.sort((a, b) => b.score - a.score).map(({ item }) => item)
}

/** The words of a query that count, without the endings of plurals. */
export function queryWords(query: string): string[] {
  return [...new Set(wordsOf(query.slice(0, QUERY_LENGTH_MAX)))]
    .filter((word) => !EMPTY_WORDS.has(word))
    .slice(0, WORDS_MAX)
}

/** Each word of an item with the most it is worth. */
export type WordIndex = ReadonlyMap<string, { weight: number; letters: number }>

/** The index of an item, from its texts and what a word of each is worth. */
export function indexWords(texts: readonly (readonly [text: string, weight: number])[]): WordIndex {
  const index = new Map<string, { weight: number; letters: number }>()
  for (const [text, weight] of texts) {
    for (const word of wordsOf(text)) {
      const best = Math.max(index.get(word)?.weight ?? 0, weight)
      index.set(word, { weight: best, letters: lettersOf(word) })
    }
  }
  return index
}

/** What a word is worth in each item: as it is, else with an error, else with an error more. */
function weightsOf(indexed: { index: WordIndex }[], word: string): number[] {
  const isFound = (weights: number[]): boolean => weights.some((weight) => weight > 0)
  const exact = indexed.map(({ index }) => weightOfWord(index, word))
  const errorsMax = word.length < 4 ? 0 : word.length < 8 ? 1 : 2
  if (isFound(exact) || errorsMax === 0) return exact
  const near = indexed.map(({ index }) => weightOfTypo(index, word, { errorsMax, weightMin: 0 }))
  if (isFound(near) || word.length < 6) return near
  return indexed.map(({ index }) => weightOfTypo(index, word, { errorsMax: errorsMax + 1, weightMin: WEIGHTS.keyword }))
}

/** Words of an upstream's file do not change while a process runs. */
const indexes = new WeakMap<Api['upstream'], WordIndex>()

function indexOfApi({ slug, upstream, endpoints }: Api): WordIndex {
  const known = indexes.get(upstream)
  if (known) return known
  const index = indexWords([
    [`${slug} ${upstream.displayName}`, WEIGHTS.name],
    [upstream.tags.join(' '), WEIGHTS.tag],
    [(upstream.keywords ?? []).join(' '), WEIGHTS.keyword],
    [upstream.category, WEIGHTS.category],
    [upstream.description, WEIGHTS.description],
    ...[...endpoints.values()].flatMap(({ path, declaration: endpoint, parameters }) => [
      [`${path} ${endpoint.description}`, WEIGHTS.description] as const,
      ...parameters.map(({ name, schema }) => [`${name} ${schema.description ?? ''}`, WEIGHTS.parameter] as const),
    ]),
  ])
  indexes.set(upstream, index)
  return index
}

function weightOfWord(index: WordIndex, word: string): number {
  const exact = index.get(word)?.weight ?? 0
  if (word.length < 4) return exact
  let best = exact
  for (const [candidate, { weight }] of index) {
    const isStem = candidate.length >= 4 && (candidate.startsWith(word) || word.startsWith(candidate))
    if (isStem) best = Math.max(best, weight * STEM_PART)
  }
  return best
}

/**
 * A typing error leaves the first letter as it is: `wetter` is meant as `weather` and not as
 * `letter`.
 *
 * @param weightMin words that are worth less are not compared
 */
function weightOfTypo(
  index: WordIndex,
  word: string,
  { errorsMax, weightMin }: { errorsMax: number; weightMin: number },
): number {
  const given = lettersOf(word)
  let best = 0
  for (const [candidate, { weight, letters }] of index) {
    if (candidate[0] !== word[0] || candidate.length < 4 || weight < weightMin) continue
    if (!mayBeWithin(errorsMax, given, letters)) continue
    if (isWithin(errorsMax, word, candidate)) best = Math.max(best, weight * TYPO_PART)
  }
  return best
}

/** Ends as a plural does and is none: its stem would be found in New York. */
const SINGULAR = new Set(['news'])

/** Lower-case words without the endings of plurals. Initials are one word: `S&P` is `sp`. */
function wordsOf(text: string): string[] {
  const words =
    text
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/[’']s\b/g, '')
      .replace(/(?<![\p{L}\p{N}])(\p{L})\s{0,2}&\s{0,2}(?=\p{L}(?!\p{L}))/gu, '$1')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  return words.map((word) =>
    word.length > 3 && !SINGULAR.has(word) ? word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1') : word,
  )
}
