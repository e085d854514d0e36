import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { endpoint, path, type Upstream } from '../catalog/upstream.ts'

const fact = record({
  id: field.text('id', '32 hexadecimal digits'),
  text: required.text('text', 'The fact, as a sentence'),
  source: field.text('source', 'Who published the fact'),
  source_url: field.text('source_url', 'Page the fact comes from'),
  language: field.text('language', 'ISO 639-1 code of the language'),
  permalink: field.text('permalink', 'Address of this fact'),
})

const randomFacts: Upstream = {
  displayName: 'Random facts',
  category: 'entertainment',
  description: 'Useless facts, a random one or that of the day. Old trivia of doubtful truth, some of it crude.',
  tags: ['facts', 'trivia', 'random', 'fun'],
  keywords: ['funny', 'joke', 'useless', 'curious', 'bored'],
  tierRequired: 'developer',
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
      parameters: Type.Object({}),
      data: fact.schema,
      request: () => ({ path: path`/api/v2/facts/random`, query: { language: 'en' } }),
      map: ({ body }) => fact.read(body) ?? invalid(),
      example: recordedRandom(),
    }),
    '/today': endpoint({
      description: 'The fact of the day.',
      parameters: Type.Object({}),
      data: fact.schema,
      // The hour at which the day changes is not known.
      cache: { seconds: lifetime.hour, staleWhileRevalidateSeconds: 600, staleIfErrorSeconds: lifetime.day },
      request: () => ({ path: path`/api/v2/facts/today`, query: { language: 'en' } }),
      map: ({ body }) => fact.read(body) ?? invalid(),
      example: recordedToday(),
    }),
  },
}

export default randomFacts

function recordedRandom() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: {
      id: '2816ebbc4eea1dfd7811ee46e3e97b33',
      text: 'American Airlines saved $40,000 in 1987 by eliminating one olive from each salad served in first-class.',
      source: 'djtech.net', source_url: 'http://www.djtech.net/humor/useless_facts.htm', language: 'en',
      permalink: 'https://uselessfacts.jsph.pl/api/v2/facts/2816ebbc4eea1dfd7811ee46e3e97b33',
    },
    // biome-ignore format: as recorded
    data: {
      id: '2816ebbc4eea1dfd7811ee46e3e97b33',
      text: 'American Airlines saved $40,000 in 1987 by eliminating one olive from each salad served in first-class.',
      source: 'djtech.net', source_url: 'http://www.djtech.net/humor/useless_facts.htm', language: 'en',
      permalink: 'https://uselessfacts.jsph.pl/api/v2/facts/2816ebbc4eea1dfd7811ee46e3e97b33',
    },
  }
}

function recordedToday() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: {
      id: '3b8c10e9cefa0eee8962ec37c9137459', text: 'The first contraceptive was crocodile dung used by the ancient Egyptians.',
      source: 'djtech.net', source_url: 'http://www.djtech.net/humor/useless_facts.htm', language: 'en',
      permalink: 'https://uselessfacts.jsph.pl/api/v2/facts/3b8c10e9cefa0eee8962ec37c9137459',
    },
    // biome-ignore format: as recorded
    data: {
      id: '3b8c10e9cefa0eee8962ec37c9137459', text: 'The first contraceptive was crocodile dung used by the ancient Egyptians.',
      source: 'djtech.net', source_url: 'http://www.djtech.net/humor/useless_facts.htm', language: 'en',
      permalink: 'https://uselessfacts.jsph.pl/api/v2/facts/3b8c10e9cefa0eee8962ec37c9137459',
    },
  }
}
