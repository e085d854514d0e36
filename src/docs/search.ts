import type { Api } from '../catalog/catalog.ts'
import { dataFields } from '../catalog/data-fields.ts'
import { queryWords, type WeighedText, WordIndex } from '../catalog/word-index.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { STATUS_CODES } from '../node-http.ts'
import { ERROR_HELP } from './error-causes.ts'
import type { Guide } from './guides.ts'
import { anchorOf } from './markdown-to-html.ts'
import { accountOperations, type OpenApi } from './operations.ts'
import { SEARCH_WORDS } from './search-words.ts'

/** A part of the documentation that the search can find. */
export interface Place {
  kind: 'Guide' | 'API' | 'Error' | 'Route'
  title: string
  /** What it belongs to, or a description; empty if the title is enough. */
  context: string
  /** Path and anchor. */
  address: string
  text: string
  /** What a query is compared with. */
  words: WeighedText[]
}

/** Worth of a word, by where it stands. */
const WEIGHTS = { title: 5, heading: 3, text: 1.5 }

/** Most results of a search. */
const FOUND_MAX = 20

/** Results that are worth less than this share of the best result are left out. */
const SHARE_OF_BEST_MIN = 0.25

/** Longest query that may be a name, characters. */
const NAME_LENGTH_MAX = 60

/** Longest excerpt of a result, characters. */
const EXCERPT_LENGTH_MAX = 180

/** Every part of the documentation: sections of guides, APIs, error codes, routes. */
export function docsPlaces(guides: Guide[], apis: Api[], document: OpenApi): Place[] {
  return [
    ...guides.flatMap(guidePlaces),
    ...apis.map(apiPlace),
    ...(Object.keys(ERRORS) as ErrorCode[]).map(errorPlace),
    ...routePlaces(document),
  ]
}

/** By the list of the places, which is made again when the catalog changes. */
const indexes = new WeakMap<readonly Place[], WordIndex>()

function indexOf(places: readonly Place[]): WordIndex {
  const index = indexes.get(places) ?? new WordIndex(places.map(({ words }) => words))
  indexes.set(places, index)
  return index
}

/** The matching parts, the best first; none for a query without words. */
export function searchDocs(places: readonly Place[], query: string): Place[] {
  const index = indexOf(places)
  const found = index.rank(`${knownName(index, query)} ${query}`, { shareMin: SHARE_OF_BEST_MIN, worthMin: 0 }) ?? []
  return found.slice(0, FOUND_MAX).flatMap((position) => places[position] ?? [])
}

/** Names with several parts: `X-Request-Id`, `RATE_LIMIT_EXCEEDED`, `llms.txt`. */
const NAME_OF_PARTS = /[a-z\d]+(?:[-_.][a-z\d]+)+/gi

/**
 * The multi-part names in a text, each as one word; headers also without their `X-`. The full name
 * of a header or a code is then worth more than its parts.
 */
function namesAsWords(text: string): string {
  const names = (text.match(NAME_OF_PARTS) ?? []).map((name) => name.replace(/[-_.]/g, ''))
  return names.flatMap((name) => (/^x/i.test(name) ? [name, name.slice(1)] : [name])).join(' ')
}

/** The query as one word, if that is a name in the documentation: `rate limit exceeded`. */
function knownName(index: WordIndex, query: string): string {
  const parts = query.slice(0, NAME_LENGTH_MAX).match(/[\p{L}\p{N}]+/gu) ?? []
  const name = parts.join('').toLowerCase()
  return parts.length > 1 && index.has(name) ? name : ''
}

/**
 * The part of a text around the first word that is in the query. If the text has no word of the
 * query, the beginning of the text.
 */
export function excerptOf(text: string, query: string): string {
  const lower = text.toLowerCase()
  const found = queryWords(query).map((word) => lower.indexOf(word))
  const first = Math.min(...found.filter((at) => at >= 0))
  const wanted = Number.isFinite(first) ? Math.max(0, first - EXCERPT_LENGTH_MAX / 3) : 0
  const start = wanted === 0 ? 0 : text.indexOf(' ', wanted) + 1
  const end = start + EXCERPT_LENGTH_MAX
  const cut = end < text.length ? text.slice(start, text.lastIndexOf(' ', end)) : text.slice(start)
  return `${start > 0 ? '… ' : ''}${cut}${end < text.length ? ' …' : ''}`
}

function place(about: Omit<Place, 'words'>, heading = about.context): Place {
  const { title, text, address } = about
  const searched = SEARCH_WORDS[address] ?? ''
  const words: WeighedText[] = [
    [`${title} ${namesAsWords(title)}`, WEIGHTS.title],
    [`${searched} ${namesAsWords(searched)}`, WEIGHTS.title],
    [`${heading} ${namesAsWords(heading)}`, WEIGHTS.heading],
    [`${text} ${namesAsWords(text)}`, WEIGHTS.text],
  ]
  return { ...about, words }
}

/** A guide, and each of its sections. */
function guidePlaces({ name, title, markdown }: Guide): Place[] {
  const address = `/docs/guides/${name}`
  const [beginning = '', ...sections] = markdown.replace(/^# .+$/m, '').split(/^## /m)
  return [
    place({ kind: 'Guide', title, context: '', address, text: plain(beginning) }),
    ...sections.map((section) => {
      const [heading = '', ...lines] = section.split('\n')
      const about = { title: plain(heading), context: title, address: `${address}#${anchorOf(heading)}` }
      return place({ kind: 'Guide', ...about, text: plain(lines.join('\n')) })
    }),
  ]
}

/** Markdown as plain text on one line. */
function plain(markdown: string): string {
  return markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\|[-| ]+\|$/gm, '')
    .replace(/^```\w*$/gm, '')
    .replace(/^\s*[-|] /gm, '')
    .replace(/[`*|#]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
}

function apiPlace({ slug, upstream, endpoints }: Api): Place {
  const { displayName, description, tags, keywords = [], category, terms } = upstream
  const all = [...endpoints.values()]
  const about = { title: displayName, context: slug, address: `/apis/${slug}` }
  const parameters = all.flatMap(({ parameters }) =>
    parameters.map(({ name, schema }) => `${name} ${schema.description ?? ''}`),
  )
  const text = [
    description,
    ...all.map(({ declaration: endpoint }) => endpoint.description),
    ...parameters,
    terms.summary,
  ].join(' ')
  const heading = [slug, ...tags, ...keywords, category, ...endpoints.keys()].join(' ')
  return place({ kind: 'API', ...about, text }, heading)
}

function errorPlace(code: ErrorCode): Place {
  const { status, message } = ERRORS[code]
  const { causes, fix } = ERROR_HELP[code]
  const about = { title: code, context: `${status} ${STATUS_CODES[status]}`, address: `/docs/errors#${code}` }
  return place({ kind: 'Error', ...about, text: [message, ...causes, fix].join(' ') })
}

function routePlaces(document: OpenApi): Place[] {
  return accountOperations(document).map(({ id, method, path, tag, summary, description, parameters, body }) => {
    const members = body ? dataFields(body.schema, body.example) : []
    const named = [...parameters.map(({ name, description: words }) => ({ name, meaning: words })), ...members]
    const text = [description, ...named.map(({ name, meaning }) => `${name}: ${meaning}.`)].join(' ').trim()
    const about = { title: `${method} ${path}`, context: summary, address: `/docs/reference#${id}` }
    return place({ kind: 'Route', ...about, text: text === '' ? summary : text }, `${summary} ${tag}`)
  })
}
