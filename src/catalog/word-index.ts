import { isWithin, lettersOf, mayBeWithin } from './nearest-name.ts'

/** Words of a query that do not help the search. */
const EMPTY_WORDS = new Set(
  'a about all an and any api apis are as at be by can could current data do does every fetch find for from get give has have how i in is it its latest list live look lookup me my near need now of on one or please right show some tell than that the their there this to today tomorrow up us want was what whats when where which will with would you your'.split(
    ' ',
  ),
)

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

/**
 * Least worth of a word that a word with a typing error may stand for. Words of descriptions are
 * worth less.
 */
const TYPO_WORTH_MIN = 4

/**
 * A shorter list counts as a list of this length. In a list of one item each word would count as
 * common, even the name of the item.
 */
const ITEMS_MIN = 5

/** A text of an item, and what each of its words is worth. */
export type WeighedText = readonly [text: string, worth: number]

/** A word of an index: its letters, and the highest worth that it has in each item. */
interface IndexedWord {
  letters: number
  /** By the position of the item. */
  worths: Map<number, number>
}

const NO_WORDS: ReadonlyMap<string, IndexedWord> = new Map()

/**
 * The words of a list of items. A search compares each word of the query with words that have the
 * same first letter, and with each of them once, however many items have the word.
 */
export class WordIndex {
  readonly #itemCount: number
  /** Words by their first letter. Forms, beginnings and typing errors of a word have it too. */
  readonly #words = new Map<string, Map<string, IndexedWord>>()

  /** @param items the texts of each item */
  constructor(items: readonly (readonly WeighedText[])[]) {
    this.#itemCount = items.length
    for (const [position, texts] of items.entries()) {
      for (const [text, worth] of texts) for (const word of wordsOf(text)) this.#add(word, position, worth)
    }
  }

  /** Whether an item has exactly this word, in lower case. */
  has(word: string): boolean {
    return this.#wordsLike(word).has(word)
  }

  /**
   * The positions of the items that fit a query, the best first; undefined for a query without
   * words. The worth of a word depends on where it stands and on how few items have it (Spärck
   * Jones, 1972). A word is found as it is and in other forms; the last word is also found as the
   * beginning of a word. Words are not found inside other words: `rate` is not in `temperature`. If
   * no item has a word, the nearest word counts, because the query may have a typing error. The
   * work is bounded, because at most eight words of a query count.
   *
   * @param shareMin least worth of a result, as a part of the best result's worth
   * @param worthMin least worth of a result
   * @param isWanted leaves other items out of the result; absent: all items are wanted
   */
  rank(
    query: string,
    {
      shareMin,
      worthMin,
      isWanted = () => true,
    }: {
      shareMin: number
      worthMin: number
      isWanted?: (position: number) => boolean
    },
  ): number[] | undefined {
    const words = queryWords(query)
    if (words.length === 0) return undefined
    const scores = new Map<number, number>()
    for (const word of words) {
      const found = this.#worthsOf(word, { mayContinue: word === words.at(-1) })
      const rarity = Math.log(1 + Math.max(ITEMS_MIN, this.#itemCount) / Math.max(1, found.size))
      for (const [position, worth] of found)
        if (isWanted(position)) scores.set(position, (scores.get(position) ?? 0) + worth * rarity)
    }
    const scoreMin = Math.max(worthMin, Math.max(...scores.values()) * shareMin)
    return [...scores]
      .filter(([, score]) => score >= scoreMin)
      .sort(([one, oneScore], [other, otherScore]) => otherScore - oneScore || one - other)
      .map(([position]) => position)
  }

  #add(word: string, position: number, worth: number): void {
    const letter = word.charAt(0)
    const words = this.#words.get(letter) ?? new Map<string, IndexedWord>()
    this.#words.set(letter, words)
    const { worths } = words.get(word) ?? { worths: new Map<number, number>() }
    worths.set(position, Math.max(worths.get(position) ?? 0, worth))
    words.set(word, { letters: lettersOf(word), worths })
  }

  #wordsLike(word: string): ReadonlyMap<string, IndexedWord> {
    return this.#words.get(word.charAt(0)) ?? NO_WORDS
  }

  /**
   * The worth of a word, by the position of the items that have it. If no item has the word, words
   * with a typing error count.
   *
   * @param mayContinue whether somebody may still be typing the word
   */
  #worthsOf(word: string, { mayContinue }: { mayContinue: boolean }): Map<number, number> {
    const found = new Map<number, number>()
    const words = this.#wordsLike(word)
    const exact = words.get(word)
    if (exact) addWorths(found, exact, 1)
    if (word.length >= 4) {
      for (const [candidate, entry] of words) {
        if (isFormOf(candidate, word) || isFormOf(word, candidate)) addWorths(found, entry, FORM_PART)
        else if (mayContinue && candidate.startsWith(word)) addWorths(found, entry, GUESS_PART)
      }
    }
    return found.size > 0 ? found : this.#typoWorths(word)
  }

  /**
   * The worth of words that differ from a word by a typing error. The first and last letter must be
   * the same, or swapped with the letter beside it, so `wether` finds `weather` but not `tether`,
   * and France does not find franc.
   */
  #typoWorths(word: string): Map<number, number> {
    const found = new Map<number, number>()
    const errorsMax = word.length < 6 ? 0 : word.length < 8 ? 1 : 2
    if (errorsMax === 0) return found
    for (const swapped of withSwappedEnds(word)) {
      const entry = this.#wordsLike(swapped).get(swapped)
      if (entry) addWorths(found, heaviestOf(entry), GUESS_PART)
    }
    const letters = lettersOf(word)
    for (const [candidate, entry] of this.#wordsLike(word)) {
      if (candidate.at(-1) !== word.at(-1) || !mayBeWithin(errorsMax, letters, entry.letters)) continue
      if (isWithin(errorsMax, word, candidate)) addWorths(found, heaviestOf(entry), GUESS_PART)
    }
    return found
  }
}

/** Notes a part of the worth of a word for each item that has it, if no higher worth is noted. */
function addWorths(found: Map<number, number>, entry: IndexedWord, part: number): void {
  for (const [position, worth] of entry.worths) {
    if (worth * part > (found.get(position) ?? 0)) found.set(position, worth * part)
  }
}

/** The words of a query that count, without plural endings. */
export function queryWords(query: string): string[] {
  return [...new Set(wordsOf(query.slice(0, QUERY_LENGTH_MAX)))]
    .filter((word) => !EMPTY_WORDS.has(word))
    .slice(0, WORDS_MAX)
}

/** A word with its first two letters swapped, and with its last two letters swapped. */
const withSwappedEnds = (word: string): string[] =>
  [word.replace(/^(.)(.)/u, '$2$1'), word.replace(/(.)(.)$/u, '$2$1')].map(singular)

/** A word only in the items where it is worth enough to be found in spite of a typing error. */
const heaviestOf = ({ letters, worths }: IndexedWord): IndexedWord => ({
  letters,
  worths: new Map([...worths].filter(([, worth]) => worth >= TYPO_WORTH_MIN)),
})

const isFormOf = (stem: string, word: string): boolean =>
  stem.length >= 4 && word.startsWith(stem) && ENDINGS.has(word.slice(stem.length))

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
  return words.map(singular)
}

const singular = (word: string): string =>
  word.length > 3 && !SINGULAR.has(word) ? word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1') : word
