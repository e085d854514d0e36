import type { Api } from './catalog.ts'
import { type WeighedText, WordIndex } from './word-index.ts'

/** Worth of a word, by where it stands. */
const WEIGHTS = { name: 5, tag: 4, keyword: 4, category: 3, description: 2, parameter: 1 }

/** Results that are worth less than this part of the best result are left out. */
const SHARE_OF_BEST_MIN = 0.5

/**
 * Results that are worth less are left out, even if there is no better result. A word in a
 * description is worth this much if one API in five has the word. So `flights to Paris` does not
 * find an API only because Paris is in an example.
 */
const WORTH_MIN = 3.5

/**
 * The chosen APIs that fit a query in everyday words, the best first. A query without words finds
 * all of them, in their order. The portal, the catalog and MCP use this search.
 *
 * @param offered all APIs that the operator offers. How rare a word is depends on all of them, so
 *   that a key for few APIs finds them by the same words
 */
export function rankApis(offered: Api[], query: string, isChosen: (api: Api) => boolean = () => true): Api[] {
  const isWanted = (position: number) => offered[position] !== undefined && isChosen(offered[position])
  const bounds = { shareMin: SHARE_OF_BEST_MIN, worthMin: WORTH_MIN }
  const found = indexOf(offered).rank(query, { ...bounds, isWanted })
  return found?.flatMap((position) => offered[position] ?? []) ?? offered.filter(isChosen)
}

/**
 * The index of the list that was searched last. The words of the file of an upstream do not change,
 * and nearly all searches are over the APIs that the operator offers.
 */
let latest: { upstreams: Api['upstream'][]; index: WordIndex } | undefined

function indexOf(apis: Api[]): WordIndex {
  const upstreams = apis.map(({ upstream }) => upstream)
  const isLatest =
    latest?.upstreams.length === upstreams.length &&
    latest.upstreams.every((upstream, position) => upstream === upstreams[position])
  if (!latest || !isLatest) latest = { upstreams, index: new WordIndex(apis.map(textsOf)) }
  return latest.index
}

function textsOf({ slug, upstream, endpoints }: Api): WeighedText[] {
  return [
    [`${slug} ${upstream.displayName}`, WEIGHTS.name],
    [upstream.tags.join(' '), WEIGHTS.tag],
    [(upstream.keywords ?? []).join(' '), WEIGHTS.keyword],
    [upstream.category, WEIGHTS.category],
    [upstream.description, WEIGHTS.description],
    ...[...endpoints.values()].flatMap(({ path, declaration: endpoint, parameters }) => [
      [`${path} ${endpoint.description}`, WEIGHTS.description] as const,
      ...parameters.map(({ name, schema }) => [`${name} ${schema.description ?? ''}`, WEIGHTS.parameter] as const),
    ]),
  ]
}
