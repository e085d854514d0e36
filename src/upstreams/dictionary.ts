import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { filledText, isObject, items, members, objects, text, texts } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid, notFound } from '../catalog/response-class.ts'
import { TEXT_LENGTH_MAX } from '../catalog/shared-parameters.ts'
import { endpoint, type FallbackSource, path, trimmed, type Upstream } from '../catalog/upstream.ts'

/** Wiktionary has two levels; an answer with thousands is not followed further. */
const SENSE_DEPTH_MAX = 3

const definition = record({
  word: required.text('word', 'The word, as the source writes it'),
  phonetic: field.text('phonetic', 'IPA'),
  meanings: field.records('meanings', 'Meanings, by part of speech', {
    part_of_speech: field.text('partOfSpeech', 'noun, verb and others'),
    definitions: field.records('definitions', 'Definitions of this part of speech', {
      definition: field.text('definition', 'The meaning in a sentence'),
      example: field.text('example', 'A sentence that uses the word'),
      synonyms: field.texts('synonyms', 'Words of the same meaning'),
      antonyms: field.texts('antonyms', 'Words of the opposite meaning'),
    }),
    synonyms: field.texts('synonyms', 'Words of the same meaning, for the part of speech'),
    antonyms: field.texts('antonyms', 'Words of the opposite meaning, for the part of speech'),
  }),
  audio_url: field.text('audio', 'Recording of the pronunciation'),
  source_urls: field.texts('sourceUrls', 'Pages the entry comes from'),
  license: field.nullableRecord('license', 'Licence of the text', {
    name: field.text('name', 'Name of the licence'),
    url: field.text('url', 'Text of the licence'),
  }),
})

const freeDictionary: FallbackSource = {
  terms: {
    summary: 'Free service without a key or a promise of uptime. Text from Wiktionary, CC BY-SA 4.0.',
    url: 'https://freedictionaryapi.com',
    licence: 'https://creativecommons.org/licenses/by-sa/4.0/',
    attribution: 'Definitions from Wiktionary (CC BY-SA 4.0) by freedictionaryapi.com; link to source_urls',
  },
  baseUrl: 'https://freedictionaryapi.com',
  // No limit is published; clients that met one waited for minutes.
  caps: { concurrency: 2, rates: [{ max: 30, seconds: 60 }] },
  attemptTimeoutMs: 8_000,
  probe: { request: { path: path`/api/v1/entries/en/polenta` }, everySeconds: 600 },
  endpoints: {
    '/define': {
      request: ({ word }) => ({ path: path`/api/v1/entries/en/${text(word) ?? ''}` }),
      // The form of its 404 is not known; a page for people means a lost route.
      isNotFound: ({ headers }) => !headers['content-type']?.startsWith('text/html'),
      rejects: [400],
      map: ({ body, parameters }) => {
        const { entries, word } = members(body)
        if (!Array.isArray(entries)) return (entries ?? null) === null && filledText(word) ? notFound() : invalid()
        const english = objects(entries).filter(isEnglish)
        if (english.length === 0) return notFound()
        return definition.read(fromFreeDictionary(members(body), english, text(parameters.word))) ?? invalid()
      },
      example: recordedFreeDictionary(),
    },
  },
}

const dictionary: Upstream = {
  displayName: 'Dictionary',
  category: 'reference',
  description: 'Definitions, examples, synonyms and pronunciation of English words, from Wiktionary.',
  tags: ['dictionary', 'english', 'definitions', 'synonyms', 'pronunciation'],
  keywords: ['word', 'meaning', 'mean', 'define', 'spelling', 'thesaurus', 'vocabulary', 'language', 'phonetic'],
  tierRequired: 'developer',
  terms: {
    summary:
      'Free service of one person, paid by donations, without a promise of uptime. Text from Wiktionary, CC BY-SA 3.0.',
    url: 'https://dictionaryapi.dev',
    licence: 'https://creativecommons.org/licenses/by-sa/3.0/',
    attribution: 'Definitions from Wiktionary (CC BY-SA 3.0) by dictionaryapi.dev; link to source_urls',
  },
  baseUrl: 'https://api.dictionaryapi.dev',
  caps: { concurrency: 4, rates: [{ max: 450, seconds: 300 }] },
  // When its origin is down, Cloudflare in front of it lets callers wait long for a 522.
  attemptTimeoutMs: 5_000,
  // A common word would be answered from Cloudflare's cache while the origin is down.
  probe: { request: { path: path`/api/v2/entries/en/polenta` }, everySeconds: 600 },
  mayLack: ['phonetic', 'audio_url', 'example', 'license'],
  // The origin has failed for months.
  fallback: freeDictionary,
  endpoints: {
    '/define': endpoint({
      description: 'Meanings of an English word, of all its etymologies.',
      parameters: Type.Object({
        word: Type.String({ minLength: 1, maxLength: TEXT_LENGTH_MAX, description: 'English word in any letter case' }),
      }),
      aliases: { word: ['q', 'query'] },
      data: definition.schema,
      // Definitions stay and the upstream is fragile, but missing words come and go.
      cache: {
        seconds: lifetime.week,
        staleWhileRevalidateSeconds: lifetime.day,
        staleIfErrorSeconds: lifetime.month,
        notFoundSeconds: lifetime.hour,
      },
      complete: ({ word }) => ({ word: trimmed('word', word).toLowerCase() }),
      request: ({ word }) => ({ path: path`/api/v2/entries/en/${word}` }),
      isNotFound: ({ body }) => members(body).title === 'No Definitions Found',
      rejects: [400],
      map: ({ body, parameters }) => {
        if (!Array.isArray(body)) return invalid()
        const entries = objects(body)
        if (entries.length === 0) return notFound()
        return definition.read(joined(entries, parameters.word)) ?? invalid()
      },
      example: recordedDefine(),
    }),
  },
}

export default dictionary

/**
 * One entry made of several, one for each etymology: with the meanings of all, and the first sound
 * that there is.
 */
function joined(entries: Source[], word: string): Source {
  const [first = {}] = entries
  const phonetics = entries.flatMap((entry) => items(entry.phonetics)).map(members)
  return {
    word: text(first.word) ?? word,
    phonetic:
      firstFilled(entries.map((entry) => entry.phonetic)) ?? firstFilled(phonetics.map((phonetic) => phonetic.text)),
    meanings: entries.flatMap((entry) => items(entry.meanings)),
    audio: firstFilled(phonetics.map((phonetic) => phonetic.audio)),
    sourceUrls: [...new Set(entries.flatMap((entry) => texts(entry.sourceUrls)))],
    license: first.license,
  }
}

/** An entry without a language counts as of the language that was asked for. */
function isEnglish({ language }: Source): boolean {
  const { code, name } = members(language)
  const written = filledText(code) ?? filledText(language) ?? filledText(name)
  return written === null || /^en(?:glish)?(?:-|$)/i.test(written)
}

/**
 * One entry as `joined` makes it, of the entries of the second source: one for each part of speech
 * and etymology.
 */
function fromFreeDictionary({ word, source }: Source, entries: Source[], asked: string | null): Source {
  const pronunciations = entries.flatMap((entry) => objects(entry.pronunciations))
  const ipa = pronunciations.filter(({ type }) => /^(?:ipa)?$/i.test(text(type) ?? ''))
  const { url, license } = members(source)
  return {
    word: filledText(word) ?? asked,
    phonetic: firstFilled(ipa.map((pronunciation) => pronunciation.text)),
    meanings: entries.map((entry) => ({
      ...entry,
      definitions: sensesOf(entry.senses).map((sense) => ({ ...sense, example: firstFilled(examplesOf(sense)) })),
    })),
    sourceUrls: [url],
    license: isObject(license) ? license : undefined,
  }
}

/** The senses that say something, each followed by those below it. */
function sensesOf(senses: unknown, depth = 0): Source[] {
  return objects(senses).flatMap((sense) => {
    const own = filledText(sense.definition) === null ? [] : [sense]
    return depth < SENSE_DEPTH_MAX ? [...own, ...sensesOf(sense.subsenses, depth + 1)] : own
  })
}

/** The first example, else the first quotation. */
function examplesOf({ examples, quotes }: Source): unknown[] {
  return [
    ...items(examples).map((example) => text(example) ?? members(example).text),
    ...objects(quotes).map(({ text }) => text),
  ]
}

function firstFilled(values: unknown[]): string | null {
  return values.map(filledText).find((value) => value !== null) ?? null
}

function recordedDefine() {
  return {
    parameters: { word: 'hello' },
    // biome-ignore format: as recorded
    response: [
      {
        word: 'hello',
        phonetics: [
          {
            audio: 'https://api.dictionaryapi.dev/media/pronunciations/en/hello-au.mp3', sourceUrl: 'https://commons.wikimedia.org/w/index.php?curid=75797336',
            license: { name: 'BY-SA 4.0', url: 'https://creativecommons.org/licenses/by-sa/4.0' },
          },
          {
            text: '/həˈləʊ/', audio: 'https://api.dictionaryapi.dev/media/pronunciations/en/hello-uk.mp3',
            sourceUrl: 'https://commons.wikimedia.org/w/index.php?curid=9021983',
            license: { name: 'BY 3.0 US', url: 'https://creativecommons.org/licenses/by/3.0/us' },
          },
          { text: '/həˈloʊ/', audio: '' },
        ],
        meanings: [
          {
            partOfSpeech: 'noun', definitions: [{ definition: '"Hello!" or an equivalent greeting.', synonyms: [], antonyms: [] }], synonyms: ['greeting'],
            antonyms: [],
          },
          { partOfSpeech: 'verb', definitions: [{ definition: 'To greet with "hello".', synonyms: [], antonyms: [] }], synonyms: [], antonyms: [] },
          {
            partOfSpeech: 'interjection',
            definitions: [
              {
                definition: 'A greeting (salutation) said when meeting someone or acknowledging someone’s arrival or presence.', synonyms: [], antonyms: [],
                example: 'Hello, everyone.',
              },
              { definition: 'A greeting used when answering the telephone.', synonyms: [], antonyms: [], example: 'Hello? How may I help you?' },
              {
                definition: 'A call for response if it is not clear if anyone is present or listening, or if a telephone conversation may have been disconnected.',
                synonyms: [], antonyms: [], example: 'Hello? Is anyone there?',
              },
              {
                definition: 'Used sarcastically to imply that the person addressed or referred to has done something the speaker or writer considers to be foolish.',
                synonyms: [], antonyms: [], example: 'You just tried to start your car with your cell phone. Hello?',
              },
              { definition: 'An expression of puzzlement or discovery.', synonyms: [], antonyms: [], example: 'Hello! What’s going on here?' },
            ],
            synonyms: [], antonyms: ['bye', 'goodbye'],
          },
        ],
        license: { name: 'CC BY-SA 3.0', url: 'https://creativecommons.org/licenses/by-sa/3.0' }, sourceUrls: ['https://en.wiktionary.org/wiki/hello'],
      },
    ],
    // biome-ignore format: as recorded
    data: {
      word: 'hello', phonetic: '/həˈləʊ/',
      meanings: [
        {
          part_of_speech: 'noun', definitions: [{ definition: '"Hello!" or an equivalent greeting.', example: null, synonyms: [], antonyms: [] }],
          synonyms: ['greeting'], antonyms: [],
        },
        { part_of_speech: 'verb', definitions: [{ definition: 'To greet with "hello".', example: null, synonyms: [], antonyms: [] }], synonyms: [], antonyms: [] },
        {
          part_of_speech: 'interjection',
          definitions: [
            {
              definition: 'A greeting (salutation) said when meeting someone or acknowledging someone’s arrival or presence.', example: 'Hello, everyone.',
              synonyms: [], antonyms: [],
            },
            { definition: 'A greeting used when answering the telephone.', example: 'Hello? How may I help you?', synonyms: [], antonyms: [] },
            {
              definition: 'A call for response if it is not clear if anyone is present or listening, or if a telephone conversation may have been disconnected.',
              example: 'Hello? Is anyone there?', synonyms: [], antonyms: [],
            },
            {
              definition: 'Used sarcastically to imply that the person addressed or referred to has done something the speaker or writer considers to be foolish.',
              example: 'You just tried to start your car with your cell phone. Hello?', synonyms: [], antonyms: [],
            },
            { definition: 'An expression of puzzlement or discovery.', example: 'Hello! What’s going on here?', synonyms: [], antonyms: [] },
          ],
          synonyms: [], antonyms: ['bye', 'goodbye'],
        },
      ],
      audio_url: 'https://api.dictionaryapi.dev/media/pronunciations/en/hello-au.mp3', source_urls: ['https://en.wiktionary.org/wiki/hello'],
      license: { name: 'CC BY-SA 3.0', url: 'https://creativecommons.org/licenses/by-sa/3.0' },
    },
  }
}

function recordedFreeDictionary() {
  return {
    parameters: { word: 'hello' },
    // biome-ignore format: as clients read it
    response: {
      word: 'hello',
      entries: [
        {
          language: { code: 'en', name: 'English' }, partOfSpeech: 'interjection',
          pronunciations: [{ type: 'ipa', text: '/həˈləʊ/', tags: ['Received Pronunciation'] }, { type: 'ipa', text: '/həˈloʊ/', tags: ['General American'] }],
          forms: [],
          senses: [
            {
              definition: 'A greeting (salutation) said when meeting someone or acknowledging someone’s arrival or presence.', tags: [],
              examples: ['Hello, everyone.'], quotes: [], synonyms: ['greetings', 'hi'], antonyms: ['goodbye'], subsenses: [],
            },
          ],
          synonyms: [], antonyms: [],
        },
        {
          language: { code: 'en', name: 'English' }, partOfSpeech: 'noun', pronunciations: [], forms: [{ word: 'hellos', tags: ['plural'] }],
          senses: [{ definition: '"Hello!" or an equivalent greeting.', tags: ['countable'], examples: [], quotes: [], synonyms: ['greeting'], antonyms: [] }],
          synonyms: [], antonyms: [],
        },
      ],
      source: {
        url: 'https://en.wiktionary.org/wiki/hello', license: { name: 'CC BY-SA 4.0', url: 'https://creativecommons.org/licenses/by-sa/4.0/' },
      },
    },
    // biome-ignore format: as mapped
    data: {
      word: 'hello', phonetic: '/həˈləʊ/',
      meanings: [
        {
          part_of_speech: 'interjection',
          definitions: [
            {
              definition: 'A greeting (salutation) said when meeting someone or acknowledging someone’s arrival or presence.', example: 'Hello, everyone.',
              synonyms: ['greetings', 'hi'], antonyms: ['goodbye'],
            },
          ],
          synonyms: [], antonyms: [],
        },
        {
          part_of_speech: 'noun',
          definitions: [{ definition: '"Hello!" or an equivalent greeting.', example: null, synonyms: ['greeting'], antonyms: [] }], synonyms: [], antonyms: [],
        },
      ],
      audio_url: null, source_urls: ['https://en.wiktionary.org/wiki/hello'],
      license: { name: 'CC BY-SA 4.0', url: 'https://creativecommons.org/licenses/by-sa/4.0/' },
    },
  }
}
