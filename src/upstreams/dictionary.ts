import { field, record, required, type Source } from '../catalog/fields.ts'
import {
  filledText,
  isObject,
  items,
  listedObjects,
  members,
  objects,
  text,
  texts,
  webAddress,
} from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { trimmed } from '../catalog/parameter-values.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { notFound } from '../catalog/response-class.ts'
import type { FallbackSource } from '../catalog/upstream.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import freeRecordings from './recordings/dictionary.fallback.json' with { type: 'json' }
import recordings from './recordings/dictionary.json' with { type: 'json' }

const ORIGIN = 'https://api.dictionaryapi.dev'

/** Wiktionary has two levels; an answer with thousands is not followed further. */
const SENSE_DEPTH_MAX = 3

const definition = record({
  word: required.text('word', 'The word, as the source writes it'),
  phonetic: field.text('phonetic', 'IPA'),
  meanings: field.records('meanings', 'Meanings, by part of speech', {
    part_of_speech: field.text('partOfSpeech', 'noun, verb and others'),
    definitions: field.records('definitions', 'Definitions of this part of speech', {
      definition: required.notNull(field.text('definition', 'The meaning in a sentence')),
      example: field.text('example', 'A sentence that uses the word'),
      synonyms: field.texts('synonyms', 'Words of the same meaning'),
      antonyms: field.texts('antonyms', 'Words of the opposite meaning'),
    }),
    synonyms: field.texts('synonyms', 'Words of the same meaning, for the part of speech'),
    antonyms: field.texts('antonyms', 'Words of the opposite meaning, for the part of speech'),
  }),
  audio_url: field.text(({ audio }) => webAddress(audio, ORIGIN), 'Recording of the pronunciation'),
  source_urls: field.texts('sourceUrls', 'Pages the entry comes from'),
  license: field.nullableRecord('license', 'Licence of the text', {
    name: field.text('name', 'Name of the licence'),
    url: field.text('url', 'Text of the licence'),
  }),
})

/** The members that both sources share. */
const define = {
  description: 'Meanings of an English word, of all its etymologies.',
  parameters: {
    word: param.text('English word in any letter case', {
      normalize: (name, word) => trimmed(name, word).toLowerCase(),
      aliases: namesOf.query,
    }),
  },
  data: definition,
}

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
    '/define': endpoint({
      ...define,
      request: ({ word }) => ({ path: path`/api/v1/entries/en/${word}` }),
      // The form of its 404 is not known; a page for people means a lost route.
      isNotFound: ({ headers }) => !headers['content-type']?.startsWith('text/html'),
      rejects: [400],
      readFrom: ({ body, parameters }) => {
        const { entries, word } = members(body)
        if (!Array.isArray(entries)) return (entries ?? null) === null && filledText(word) ? notFound() : undefined
        const found = listedObjects(entries)
        if (!found) return undefined
        const english = found.filter(isEnglish)
        if (english.length === 0) return notFound()
        return fromFreeDictionary(members(body), english, parameters.word)
      },
      example: freeRecordings['/define'],
    }),
  },
}

export default upstream({
  displayName: 'Dictionary',
  category: 'reference',
  description: 'Definitions, examples, synonyms and pronunciation of English words, from Wiktionary.',
  tags: ['dictionary', 'english', 'definitions', 'synonyms', 'pronunciation'],
  keywords: words('word meaning mean define spelling thesaurus vocabulary language phonetic'),
  terms: {
    summary:
      'Free service of one person, paid by donations, without a promise of uptime. Text from Wiktionary, CC BY-SA 3.0.',
    url: 'https://dictionaryapi.dev',
    licence: 'https://creativecommons.org/licenses/by-sa/3.0/',
    attribution: 'Definitions from Wiktionary (CC BY-SA 3.0) by dictionaryapi.dev; link to source_urls',
  },
  baseUrl: ORIGIN,
  caps: { concurrency: 4, rates: [{ max: 450, seconds: 300 }] },
  // If its origin is down, Cloudflare in front of it makes callers wait long for a 522.
  attemptTimeoutMs: 5_000,
  // A common word would be answered from Cloudflare's cache while the origin is down.
  probe: { request: { path: path`/api/v2/entries/en/polenta` }, everySeconds: 600 },
  mayLack: words('phonetic audio_url example license'),
  // The origin has failed for months.
  fallback: freeDictionary,
  endpoints: {
    '/define': endpoint({
      ...define,
      // Definitions are stored for long, because they do not change and the upstream is fragile.
      // "Not found" is stored for less, because words are added.
      cache: {
        seconds: lifetime.week,
        staleWhileRevalidateSeconds: lifetime.day,
        staleIfErrorSeconds: lifetime.month,
        notFoundSeconds: lifetime.hour,
      },
      request: ({ word }) => ({ path: path`/api/v2/entries/en/${word}` }),
      isNotFound: ({ body }) => members(body).title === 'No Definitions Found',
      rejects: [400],
      readFrom: ({ body, parameters }) => {
        const entries = listedObjects(body)
        if (entries?.length === 0) return notFound()
        const isOfWord = entries?.some(({ word, meanings }) => (word ?? meanings) !== undefined)
        return entries && isOfWord ? joined(entries, parameters.word) : undefined
      },
      example: recordings['/define'],
    }),
  },
})

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
    meanings:
      entries.map(({ meanings }) => meanings ?? []).find((meanings) => !Array.isArray(meanings)) ??
      entries.flatMap(({ meanings }) => items(meanings)),
    audio: firstFilled(phonetics.map((phonetic) => phonetic.audio)),
    sourceUrls: [...new Set(entries.flatMap((entry) => texts(entry.sourceUrls)))],
    license: first.license,
  }
}

/** If an entry has no language, it counts as an entry of the requested language. */
function isEnglish({ language }: Source): boolean {
  const { code, name } = members(language)
  const written = filledText(code) ?? filledText(language) ?? filledText(name)
  return written === null || /^en(?:glish)?(?:-|$)/i.test(written)
}

/**
 * One entry as `joined` makes it, of the entries of the second source: one for each part of speech
 * and etymology.
 */
function fromFreeDictionary({ word, source }: Source, entries: Source[], asked: string): Source {
  const pronunciations = entries.flatMap((entry) => objects(entry.pronunciations))
  const ipa = pronunciations.filter(({ type }) => /^(?:ipa)?$/i.test(text(type) ?? ''))
  const { url, license } = members(source)
  return {
    word: filledText(word) ?? asked,
    phonetic: firstFilled(ipa.map((pronunciation) => pronunciation.text)),
    meanings: entries.map(({ partOfSpeech, senses, synonyms, antonyms }) => ({
      ...{ partOfSpeech, synonyms, antonyms },
      definitions: definitionsOf(senses),
    })),
    sourceUrls: texts([url]),
    license: isObject(license) ? license : undefined,
  }
}

/** Senses without a text count as items that cannot be read. */
function definitionsOf(senses: unknown): unknown {
  const said = sensesOf(senses).map((sense) => ({ ...sense, example: firstFilled(examplesOf(sense)) }))
  if (said.length > 0) return said
  return Array.isArray(senses) ? senses.map(() => null) : senses
}

/** The senses that say something, each followed by those below it. */
function sensesOf(senses: unknown, depth = 0): Source[] {
  return objects(senses).flatMap((sense) => {
    const own = filledText(sense.definition) === null ? [] : [sense]
    return depth < SENSE_DEPTH_MAX ? [...own, ...sensesOf(sense.subsenses, depth + 1)] : own
  })
}

/** The first example, or else the first quotation. */
function examplesOf({ examples, quotes }: Source): unknown[] {
  return [
    ...items(examples).map((example) => text(example) ?? members(example).text),
    ...objects(quotes).map(({ text }) => text),
  ]
}

function firstFilled(values: unknown[]): string | null {
  return values.map(filledText).find((value) => value !== null) ?? null
}
