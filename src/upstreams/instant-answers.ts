import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, mapObjects, members, number, objects, webAddress } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { trimmed } from '../catalog/parameter-values.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { overLimit, type ResponseClass } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/instant-answers.json' with { type: 'json' }

const CHALLENGE_PAUSE_MS = 60_000

const answer = record({
  type: required.notNull(
    field.text('Type', 'A article, D disambiguation, C category, N name, E exclusive, empty when nothing is known'),
  ),
  heading: field.text(written('Heading'), 'Name of the subject'),
  abstract: field.text(
    (source) => filledText(written('AbstractText')(source)) ?? written('Abstract')(source),
    'Summary of the subject',
  ),
  abstract_url: field.text('AbstractURL', 'Page the summary comes from'),
  abstract_source: field.text('AbstractSource', 'Name of the source of the summary'),
  image: field.text(({ Image }) => imageUrl(Image), 'URL of a picture'),
  answer: field.text(written('Answer'), 'Direct answer; null when it is neither text nor number'),
  answer_type: field.text('AnswerType', 'Kind of direct answer, such as calc or ip; empty without one'),
  definition: field.text(written('Definition'), 'Dictionary definition; empty without one'),
  definition_url: field.text('DefinitionURL', 'Page the definition comes from'),
  entity: field.text('Entity', 'Kind of subject, such as programming language; empty if unknown'),
  redirect: field.text('Redirect', 'Where a !bang query leads'),
  related_topics: field.records(
    ({ RelatedTopics }) => ungrouped(RelatedTopics),
    'Related subjects; on a disambiguation, the possible ones',
    {
      text: field.text(written('Text'), 'Description of the topic'),
      url: field.text('FirstURL', 'Page of the topic'),
      image: field.text(({ Icon }) => imageUrl(members(Icon).URL), 'URL of a picture; empty without one'),
      group: field.text('group', 'Heading that the topic stands under'),
    },
  ),
  results: field.records('Results', 'Official links of the subject', {
    text: field.text(written('Text'), 'Title of the link'),
    url: field.text('FirstURL', 'Address of the link'),
  }),
})

export default upstream({
  displayName: 'Instant answers',
  category: 'search',
  description: 'Abstract, definition, direct answer and related topics for a query, from DuckDuckGo; no web results.',
  tags: ['search', 'answers', 'definitions', 'topics', 'abstract'],
  keywords: words('duckduckgo answer question quick explain fact web'),
  terms: {
    summary: 'Free with attribution to DuckDuckGo and to the source of the abstract.',
    attribution: 'Results from DuckDuckGo; name the source in abstract_source',
  },
  baseUrl: 'https://api.duckduckgo.com',
  // Nothing is published: one a second on average is polite.
  caps: { concurrency: 2, rates: [{ max: 60, seconds: 60 }] },
  probe: { request: { path: path`/`, query: { q: 'duckduckgo', format: 'json', no_html: '1' } }, everySeconds: 300 },
  reservedParameters: words('callback pretty'),
  mayLack: words('answer image related_topics results'),
  classify,
  endpoints: {
    '/search': endpoint({
      description:
        'Instant answer (abstract, definition, related topics) for a query; all texts are empty when there is none.',
      parameters: { q: param.text('Query', { maxLength: 499, normalize: trimmed, aliases: namesOf.query }) },
      data: answer,
      cache: { seconds: secondsFresh, staleIfErrorSeconds: lifetime.day },
      request: ({ q }) => ({ path: path`/`, query: { q, format: 'json', no_html: '1', no_redirect: '1' } }),
      rejects: [400],
      example: recordings['/search'],
    }),
  },
})

/**
 * 202 with JSON is a plain answer; 202 without is the challenge page that this upstream throttles
 * with.
 */
function classify({ status, body }: UpstreamResponse): ResponseClass | undefined {
  return status === 202 && body === undefined ? overLimit(CHALLENGE_PAUSE_MS) : undefined
}

/**
 * An abstract lasts; what is unknown today may be known later; exclusive answers are computed for
 * the moment.
 */
function secondsFresh(_: unknown, { type, abstract }: Record<string, unknown>): number {
  if (type === 'E') return 0
  return filledText(abstract) === null ? lifetime.hour : lifetime.day
}

/** The member as text: what is a number in words comes as a JSON number. */
function written(name: string): (source: Source) => unknown {
  return ({ [name]: value }) => (number(value) === null ? value : String(value))
}

function imageUrl(value: unknown): string | null {
  return value === '' ? '' : webAddress(value, 'https://duckduckgo.com')
}

/** Topics, the topics of groups under the name of their group. */
function ungrouped(topics: unknown): unknown {
  return mapObjects(topics, (entry) =>
    Array.isArray(entry.Topics)
      ? objects(entry.Topics).map((topic) => ({ ...topic, group: entry.Name }))
      : { ...entry, group: null },
  )
}
