import type { Api } from '../catalog/catalog.ts'

/** Words that say nothing of what is sought. */
const EMPTY_WORDS = new Set(
  'a an and api are as at be by can current data do does find for from get give how i in is it list me my now of on one or show some tell that the there this to today what when where which who with you your'.split(
    ' ',
  ),
)

/** What a word is worth by where it stands. */
const WEIGHTS = { name: 5, tag: 4, category: 3, description: 2, parameter: 1 }

/**
 * APIs that fit any word of a query, the best first; all of them without words. A word counts by where it stands and
 * by how few APIs have it (Spärck Jones, 1972), at the start of a word alone: `rate` is not in `temperature`.
 */
export function rankApis(apis: Api[], query: string): Api[] {
  const words = wordsOf(query).filter((word) => !EMPTY_WORDS.has(word))
  if (words.length === 0) return apis
  const indexed = apis.map((api) => ({ api, index: indexOf(api), score: 0 }))
  for (const word of words) {
    const weights = indexed.map(({ index }) => weightOf(index, word))
    const found = weights.filter((weight) => weight > 0).length
    const rarity = Math.log(1 + apis.length / Math.max(1, found))
    for (const [position, entry] of indexed.entries()) entry.score += (weights[position] ?? 0) * rarity
  }
  const fitting = indexed.filter(({ score }) => score > 0)
  return fitting.sort((a, b) => b.score - a.score).map(({ api }) => api)
}

/** Each word of an API's description with the most it is worth. */
function indexOf({ slug, upstream, endpoints }: Api): Map<string, number> {
  const index = new Map<string, number>()
  const add = (text: string, weight: number) => {
    for (const word of wordsOf(text)) index.set(word, Math.max(index.get(word) ?? 0, weight))
  }
  add(`${slug} ${upstream.displayName}`, WEIGHTS.name)
  add(upstream.tags.join(' '), WEIGHTS.tag)
  add(upstream.category, WEIGHTS.category)
  add(upstream.description, WEIGHTS.description)
  for (const { path, endpoint, parameters } of endpoints.values()) {
    add(`${path} ${endpoint.description}`, WEIGHTS.description)
    for (const { name, schema } of parameters) add(`${name} ${schema.description ?? ''}`, WEIGHTS.parameter)
  }
  return index
}

function weightOf(index: Map<string, number>, word: string): number {
  let best = 0
  for (const [candidate, weight] of index) {
    const isSame = candidate === word
    const isStem =
      word.length >= 4 && candidate.length >= 4 && (candidate.startsWith(word) || word.startsWith(candidate))
    if (isSame || isStem) best = Math.max(best, isSame ? weight : weight * 0.8)
  }
  return best
}

/** Lower-case words without the endings of plurals. */
function wordsOf(text: string): string[] {
  const words =
    text
      .toLowerCase()
      .normalize('NFKD')
      .match(/[\p{L}\p{N}]+/gu) ?? []
  return words.map((word) => (word.length > 3 ? word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1') : word))
}
