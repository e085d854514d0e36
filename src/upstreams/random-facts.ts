import { field, record, required } from '../catalog/fields.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/random-facts.json' with { type: 'json' }

const fact = record({
  id: field.text('id', '32 hexadecimal digits'),
  text: required.text('text', 'The fact, as a sentence'),
  source: field.text('source', 'Who published the fact'),
  source_url: field.text('source_url', 'Page the fact comes from'),
  language: field.text('language', 'ISO 639-1 code of the language'),
  permalink: field.text('permalink', 'Address of this fact'),
})

export default upstream({
  displayName: 'Random facts',
  category: 'entertainment',
  description: 'Useless facts: a random fact, or the fact of the day. Old trivia of doubtful truth, some of it crude.',
  tags: ['facts', 'trivia', 'random', 'fun'],
  keywords: words('funny joke useless curious bored'),
  terms: {
    summary: 'Free, run by one person, without published terms. Name the source that comes with each fact.',
    url: 'https://uselessfacts.jsph.pl',
    attribution: 'Useless Facts API by Joseph Paul',
  },
  baseUrl: 'https://uselessfacts.jsph.pl',
  // Which form comes without it is not documented.
  headers: { accept: 'application/json' },
  // No limit is published; one a second on average spares a service run by one person.
  caps: { concurrency: 2, rates: [{ max: 60, seconds: 60 }] },
  probe: { request: { path: path`/api/v2/facts/today`, query: { language: 'en' } }, everySeconds: 600 },
  endpoints: {
    '/random': endpoint({
      description: 'One random fact, another one each time.',
      data: fact,
      request: () => ({ path: path`/api/v2/facts/random`, query: { language: 'en' } }),
      example: recordings['/random'],
    }),
    '/today': endpoint({
      description: 'The fact of the day.',
      data: fact,
      // The hour at which the day changes is not known.
      cache: { seconds: lifetime.hour, staleWhileRevalidateSeconds: 600, staleIfErrorSeconds: lifetime.day },
      request: () => ({ path: path`/api/v2/facts/today`, query: { language: 'en' } }),
      example: recordings['/today'],
    }),
  },
})
