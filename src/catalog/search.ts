import type { Api } from './catalog.ts'
import { isWithin, lettersOf, mayBeWithin } from './nearest-name.ts'

/** Words of a query that do not help the search. */
const EMPTY_WORDS = new Set(
  'a about all an and any api apis are as at be by can could current data do does every fetch find for from get give has have how i in is it its latest list live look lookup me my near need now of on one or please right show some tell than that the their there this to today tomorrow up us want was what whats when where which will with would you your'.split(
    ' ',
  ),
)

/** Worth of a word, by where it stands. */
const WEIGHTS = { name: 5, tag: 4, keyword: 4, category: 3, description: 2, parameter: 1 }

/** Worth of another form of a word, as a part of the worth of the word itself. */
const FORM_PART = 0.8

/**
 * Worth of a word with a typing error, and of the beginning of a word, as a part of the word's
 * worth.
 */
const GUESS_PART = 0.5

/**
 * Endings that make another form of a word: `convert` and `converter`, but not `gold` and `golden`.
 */
const ENDINGS = new Set(['d', 'ed', 'er', 'ers', 'es', 'ing', 'ion', 'ions', 'ly', 'r', 's'])

/**
 * Most words of a query that count. Anybody may search, and a word that no API has is compared with
 * all words.
 */
const WORDS_MAX = 8

/**
 * Characters of a query that are read. Normalization can turn one letter into eighteen, so half a
 * megabyte would take 300 ms.
 */
const QUERY_LENGTH_MAX = 400

/** Results that are worth less than this part of the best result are left out. */
const SHARE_OF_BEST_MIN = 0.5

/**
 * Results that are worth less are left out, even if there is no better result. A word in a
 * description is worth this much if one API in five has the word. So `flights to Paris` does not
 * find an API only because Paris is in an example.
 */
const WORTH_MIN = 3.5

/**
 * The APIs that fit a query in everyday words, the best first. A query without words finds all
 * APIs, in their order. The portal, the catalog and MCP use this search.
 */
export function rankApis(apis: Api[], query: string): Api[] {
  return rankByWords(apis, query, { indexOf: indexOfApi, shareMin: SHARE_OF_BEST_MIN, worthMin: WORTH_MIN }) ?? apis
}

/**
 * The items that fit a query, the best first; undefined for a query without words. The worth of a
 * word depends on where it stands and on how few items have it (Spärck Jones, 1972). A word is
 * found as it is and in other forms; the last word is also found as the beginning of a word. Words
 * are not found inside other words: `rate` is not in `temperature`. If no item has a word, the
 * nearest word counts, because the query may have a typing error. The work is bounded, because at
 * most eight words of a query count.
 *
 * @param shareMin least worth of a result, as a part of the best result's worth
 * @param worthMin least worth of a result
 */
export function rankByWords<Item>(
  items: readonly Item[],
  query: string,
  { indexOf, shareMin, worthMin }: { indexOf: (item: Item) => WordIndex; shareMin: number; worthMin: number },
): Item[] | undefined {
  const words = queryWords(query)
  if (words.length === 0) return undefined
  const indexed = items.map((item) => ({ item, index: indexOf(item), score: 0 }))
  for (const word of words) {
    const found = weightsOf(indexed, word, { mayContinue: word === words.at(-1) })
    const rarity = Math.log(1 + items.length / Math.max(1, found.filter((weight) => weight > 0).length))
    for (const [position, entry] of indexed.entries()) entry.score += (found[position] ?? 0) * rarity
  }
  const best = Math.max(...indexed.map(({ score }) => score))
  const fitting = indexed.filter(({ score }) => score > 0 && score >= Math.max(worthMin, best * shareMin))
  return fitting.sort((a, b) => b.score - a.score).map(({ item }) => item)
}

/** The words of a query that count, without plural endings. */
export function queryWords(query: string): string[] {
  return [...new Set(wordsOf(query.slice(0, QUERY_LENGTH_MAX)))]
    .filter((word) => !EMPTY_WORDS.has(word))
    .slice(0, WORDS_MAX)
}

/** Each word of an item with its highest worth. */
export type WordIndex = ReadonlyMap<string, { weight: number; letters: number }>

/** The index of an item, from its texts and the worth of the words in each text. */
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

/**
 * The worth of a word in each item. If no item has the word, words with a typing error count.
 *
 * @param mayContinue whether somebody may still be typing the word
 */
function weightsOf(indexed: { index: WordIndex }[], word: string, options: { mayContinue: boolean }): number[] {
  const exact = indexed.map(({ index }) => weightOfWord(index, word, options))
  const errorsMax = word.length < 6 ? 0 : word.length < 8 ? 1 : 2
  if (errorsMax === 0 || exact.some((weight) => weight > 0)) return exact
  return indexed.map(({ index }) => weightOfTypo(index, word, errorsMax))
}

/** Indexes are kept because the words of an upstream's file do not change while a process runs. */
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

function weightOfWord(index: WordIndex, word: string, { mayContinue }: { mayContinue: boolean }): number {
  const exact = index.get(word)?.weight ?? 0
  if (word.length < 4) return exact
  let best = exact
  for (const [candidate, { weight }] of index) {
    if (isFormOf(candidate, word) || isFormOf(word, candidate)) best = Math.max(best, weight * FORM_PART)
    else if (mayContinue && candidate.startsWith(word)) best = Math.max(best, weight * GUESS_PART)
  }
  return best
}

const isFormOf = (stem: string, word: string): boolean =>
  stem.length >= 4 && word.startsWith(stem) && ENDINGS.has(word.slice(stem.length))

/**
 * The worth of words that differ by a typing error. The first and last letter must be the same, so
 * `wether` finds `weather` but not `tether`, and France does not find franc. Words of descriptions
 * are not compared.
 */
function weightOfTypo(index: WordIndex, word: string, errorsMax: number): number {
  const given = lettersOf(word)
  let best = 0
  for (const [candidate, { weight, letters }] of index) {
    if (candidate[0] !== word[0] || candidate.at(-1) !== word.at(-1) || weight < WEIGHTS.keyword) continue
    if (!mayBeWithin(errorsMax, given, letters)) continue
    if (isWithin(errorsMax, word, candidate)) best = Math.max(best, weight * GUESS_PART)
  }
  return best
}

/** Words that only look like plurals. The stem of `news` would be found in New York. */
const SINGULAR = new Set(['news'])

/**
 * The words of a text in lower case, without plural endings. Initials are one word: `S&P` becomes
 * `sp`.
 */
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
