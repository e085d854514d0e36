import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, members, number, objects, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid, overLimit, type ResponseClass } from '../catalog/response-class.ts'
import { otherNames } from '../catalog/shared-parameters.ts'
import { endpoint, path, trimmed, type Upstream, type UpstreamResponse } from '../catalog/upstream.ts'

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
  entity: field.text('Entity', 'Kind of subject, such as programming language; empty where unknown'),
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

const instantAnswers: Upstream = {
  displayName: 'Instant answers',
  category: 'search',
  description: 'Abstract, definition, direct answer and related topics for a query, from DuckDuckGo; no web results.',
  tags: ['search', 'answers', 'definitions', 'topics', 'abstract'],
  keywords: ['duckduckgo', 'answer', 'question', 'quick', 'explain', 'fact', 'web'],
  tierRequired: 'developer',
  terms: {
    summary: 'Free with attribution to DuckDuckGo and to the source of the abstract.',
    attribution: 'Results from DuckDuckGo; name the source in abstract_source',
  },
  baseUrl: 'https://api.duckduckgo.com',
  // Nothing is published: one a second on average is polite.
  caps: { concurrency: 2, rates: [{ max: 60, seconds: 60 }] },
  probe: {
    request: { path: path`/`, query: { q: 'duckduckgo', format: 'json', no_html: '1' } },
    everySeconds: 300,
  },
  reservedParameters: ['callback', 'pretty'],
  mayLack: ['answer', 'image', 'related_topics', 'results'],
  classify,
  endpoints: {
    '/search': endpoint({
      description:
        'Instant answer (abstract, definition, related topics) for a query; all texts are empty when there is none.',
      parameters: Type.Object({
        q: Type.String({ minLength: 1, maxLength: 499, description: 'Query' }),
      }),
      aliases: { q: otherNames('query', 'q') },
      data: answer.schema,
      cache: { seconds: secondsFresh, staleIfErrorSeconds: lifetime.day },
      complete: ({ q }) => ({ q: trimmed('q', q) }),
      request: ({ q }) => ({ path: path`/`, query: { q, format: 'json', no_html: '1', no_redirect: '1' } }),
      rejects: [400],
      map: ({ body }) => answer.read(body) ?? invalid(),
      example: recordedSearch(),
    }),
  },
}

export default instantAnswers

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
  const image = text(value)
  return image?.startsWith('/') ? `https://duckduckgo.com${image}` : image
}

/** Topics, the topics of groups under the name of their group. */
function ungrouped(topics: unknown): Source[] {
  return objects(topics).flatMap((entry) =>
    Array.isArray(entry.Topics)
      ? objects(entry.Topics).map((topic) => ({ ...topic, group: entry.Name }))
      : { ...entry, group: null },
  )
}

function recordedSearch() {
  return {
    parameters: { q: 'Rust programming language' },
    // biome-ignore format: as recorded
    response: {
      Abstract: 'Rust is a multi-paradigm, general-purpose programming language that emphasizes performance, type safety, and concurrency. It enforces memory safety, meaning that all references point to valid memory, without requiring the use of automated memory management techniques such as garbage collection. To simultaneously enforce memory safety and prevent data races, its "borrow checker" tracks the object lifetime of all references in a program during compilation. Rust was influenced by ideas from functional programming, including immutability, higher-order functions, and algebraic data types. It is popular for systems programming. Software developer Graydon Hoare created Rust as a personal project while working at Mozilla Research in 2006. Mozilla officially sponsored the project in 2009. In the years following the first stable release in May 2015, Rust was adopted by companies including Amazon, Discord, Dropbox, Google, Meta, and Microsoft.',
      AbstractSource: 'Wikipedia',
      AbstractText: 'Rust is a multi-paradigm, general-purpose programming language that emphasizes performance, type safety, and concurrency. It enforces memory safety, meaning that all references point to valid memory, without requiring the use of automated memory management techniques such as garbage collection. To simultaneously enforce memory safety and prevent data races, its "borrow checker" tracks the object lifetime of all references in a program during compilation. Rust was influenced by ideas from functional programming, including immutability, higher-order functions, and algebraic data types. It is popular for systems programming. Software developer Graydon Hoare created Rust as a personal project while working at Mozilla Research in 2006. Mozilla officially sponsored the project in 2009. In the years following the first stable release in May 2015, Rust was adopted by companies including Amazon, Discord, Dropbox, Google, Meta, and Microsoft.',
      AbstractURL: 'https://en.wikipedia.org/wiki/Rust_(programming_language)',
      Answer: '', AnswerType: '', Definition: '', DefinitionSource: '', DefinitionURL: '', Entity: 'programming language',
      Heading: 'Rust (programming language)', Image: '/i/832f249b.png', ImageHeight: 200, ImageIsLogo: 1, ImageWidth: 200,
      Infobox: { content: [{ data_type: 'string', label: 'Designed by', value: 'Graydon Hoare', wiki_order: 0 }] },
      OfficialDomain: 'rust-lang.org', OfficialWebsite: 'https://foundation.rust-lang.org', Redirect: '',
      RelatedTopics: [
        {
          FirstURL: 'https://duckduckgo.com/c/Rust_(programming_language)', Icon: { Height: '', URL: '', Width: '' },
          Result: '<a href="https://duckduckgo.com/c/Rust_(programming_language)">Rust (programming language) Category</a>',
          Text: 'Rust (programming language) Category',
        },
        {
          FirstURL: 'https://duckduckgo.com/c/Pattern_matching_programming_languages', Icon: { Height: '', URL: '', Width: '' },
          Result: '<a href="https://duckduckgo.com/c/Pattern_matching_programming_languages">Pattern matching programming languages</a>',
          Text: 'Pattern matching programming languages',
        },
      ],
      Results: [{
        FirstURL: 'https://foundation.rust-lang.org', Icon: { Height: 16, URL: '/i/foundation.rust-lang.org.ico', Width: 16 },
        Result: '<a href="https://foundation.rust-lang.org"><b>Official site</b></a><a href="https://foundation.rust-lang.org"></a>',
        Text: 'Official site',
      }],
      Type: 'A',
      meta: { attribution: null, description: 'Wikipedia', id: 'wikipedia_fathead', name: 'Wikipedia', src_domain: 'en.wikipedia.org', status: 'live' },
    },
    // biome-ignore format: as recorded
    data: {
      type: 'A', heading: 'Rust (programming language)',
      abstract: 'Rust is a multi-paradigm, general-purpose programming language that emphasizes performance, type safety, and concurrency. It enforces memory safety, meaning that all references point to valid memory, without requiring the use of automated memory management techniques such as garbage collection. To simultaneously enforce memory safety and prevent data races, its "borrow checker" tracks the object lifetime of all references in a program during compilation. Rust was influenced by ideas from functional programming, including immutability, higher-order functions, and algebraic data types. It is popular for systems programming. Software developer Graydon Hoare created Rust as a personal project while working at Mozilla Research in 2006. Mozilla officially sponsored the project in 2009. In the years following the first stable release in May 2015, Rust was adopted by companies including Amazon, Discord, Dropbox, Google, Meta, and Microsoft.',
      abstract_url: 'https://en.wikipedia.org/wiki/Rust_(programming_language)', abstract_source: 'Wikipedia',
      image: 'https://duckduckgo.com/i/832f249b.png', answer: '', answer_type: '', definition: '', definition_url: '', entity: 'programming language', redirect: '',
      related_topics: [
        { text: 'Rust (programming language) Category', url: 'https://duckduckgo.com/c/Rust_(programming_language)', image: '', group: null },
        { text: 'Pattern matching programming languages', url: 'https://duckduckgo.com/c/Pattern_matching_programming_languages', image: '', group: null },
      ],
      results: [{ text: 'Official site', url: 'https://foundation.rust-lang.org' }],
    },
  }
}
