import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { fallbackUpstream } from '../../src/catalog/fallback.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import { failed, invalid, notFound, overLimit } from '../../src/catalog/response-class.ts'
import dictionary from '../../src/upstreams/dictionary.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const define = dictionary.endpoints['/define'] as Endpoint

function interpret(status: number, body: unknown) {
  return interpretAnswers({ upstream: dictionary, endpoint: define }, [{ status, headers: {}, body }], {
    parameters: { word: 'hello' },
    context: { now: 0 },
  })
}

function interpretData(entries: unknown[]) {
  const result = interpret(200, entries)
  assert.ok('data' in result)
  return result.data
}

const noun = { partOfSpeech: 'noun', definitions: [{ definition: 'A.' }], synonyms: ['a'], antonyms: [] }
const verb = { partOfSpeech: 'verb', definitions: [{ definition: 'B.', example: 'To b.' }], synonyms: [], antonyms: [] }

test('the recorded answer maps to the recorded data', () => {
  assert.deepEqual(interpret(200, define.example.response), { data: define.example.data })
})

test('an unknown word is UPSTREAM_NOT_FOUND', () => {
  const body = { title: 'No Definitions Found', message: "Sorry pal, we couldn't find definitions.", resolution: '' }
  assert.deepEqual(interpret(404, body), { responseClass: notFound() })
  assert.deepEqual(interpret(200, []), { responseClass: notFound() })
})

test('an object is an error and never a definition, whatever the status', () => {
  assert.deepEqual(interpret(200, { title: 'Something Went Wrong' }), { responseClass: invalid() })
})

test('an origin that is down behind Cloudflare is UPSTREAM_ERROR', () => {
  assert.deepEqual(interpret(522, undefined), { responseClass: failed() })
})

test('an unexpected failure is UPSTREAM_ERROR', () => {
  const body = { title: 'Something Went Wrong', message: 'Sorry pal, something went wrong, and its not your fault.' }
  assert.deepEqual(interpret(500, body), { responseClass: failed() })
})

test('a 429 is UPSTREAM_RATE_LIMITED, as text and as JSON', () => {
  assert.deepEqual(interpret(429, undefined), { responseClass: overLimit() })
  assert.deepEqual(interpret(429, { title: 'API Rate Limit Exceeded' }), { responseClass: overLimit() })
})

test('the meanings of all etymologies are joined in order', () => {
  const { meanings, word } = interpretData([
    { word: 'bank', meanings: [noun] },
    { word: 'bank', meanings: [verb, noun] },
  ])
  assert.equal(word, 'bank')
  assert.deepEqual(
    (meanings as { part_of_speech: string }[]).map(({ part_of_speech }) => part_of_speech),
    ['noun', 'verb', 'noun'],
  )
})

test('the example is null and synonyms and antonyms are empty if a definition has none', () => {
  assert.deepEqual(interpretData([{ word: 'a', meanings: [noun] }]).meanings, [
    {
      part_of_speech: 'noun',
      definitions: [{ definition: 'A.', example: null, synonyms: [], antonyms: [] }],
      synonyms: ['a'],
      antonyms: [],
    },
  ])
})

test('the phonetic of an entry comes before its list of phonetics, and empty phonetics do not count', () => {
  const phonetics = [{ audio: 'https://x/a.mp3' }, { text: '' }, { text: '/b/' }]
  assert.equal(
    interpretData([
      { word: 'a', phonetics },
      { word: 'a', phonetic: '/c/' },
    ]).phonetic,
    '/c/',
  )
  assert.equal(interpretData([{ word: 'a', phonetic: '', phonetics }]).phonetic, '/b/')
})

test('phonetics may be empty or absent', () => {
  for (const entry of [{ word: 'a', phonetics: [] }, { word: 'a' }]) {
    const data = interpretData([entry])
    assert.equal(data.phonetic, null)
    assert.equal(data.audio_url, null)
  }
})

test('an audio that is the empty string is skipped', () => {
  const phonetics = [{ text: '/a/', audio: '' }, { audio: 'https://x/a.mp3' }]
  assert.equal(interpretData([{ word: 'a', phonetics }]).audio_url, 'https://x/a.mp3')
})

test('sources of several entries are listed once, and a license may be absent', () => {
  const sourceUrls = ['https://en.wiktionary.org/wiki/a']
  const data = interpretData([
    { word: 'a', sourceUrls },
    { word: 'a', sourceUrls: [...sourceUrls, 'https://en.wiktionary.org/wiki/A'] },
  ])
  assert.deepEqual(data.source_urls, ['https://en.wiktionary.org/wiki/a', 'https://en.wiktionary.org/wiki/A'])
  assert.equal(data.license, null)
})

test('a word is sent trimmed, in lower case and as a single path segment', () => {
  const completed = define.complete?.({ word: '  And/Or ' }, { now: 0 })
  assert.deepEqual(completed, { word: 'and/or' })
  assert.deepEqual(define.request({ word: 'and/or' }, { now: 0 }), { path: '/api/v2/entries/en/and%2For' })
  assert.throws(() => define.complete?.({ word: '   ' }, { now: 0 }), InvalidParameter)
})

test('an attempt ends long before Cloudflare gives up, and the probe requests a rare word', () => {
  assert.equal(dictionary.attemptTimeoutMs, 5_000)
  assert.match(dictionary.probe.request.path, /\/polenta$/)
})

test('a definition is stored for a week, and a month longer while the source fails; a missing word for an hour', () => {
  assert.equal(define.cache?.seconds, 604_800)
  assert.equal(define.cache?.staleIfErrorSeconds, 2_592_000)
  assert.equal(define.cache?.notFoundSeconds, 3_600)
})

const second = fallbackUpstream(dictionary) ?? assert.fail()

/** An answer of the second source. */
function interpretSecond(status: number, body: unknown) {
  const endpoint = second.endpoints['/define'] as Endpoint
  return interpretAnswers({ upstream: second, endpoint }, [{ status, headers: {}, body }], {
    parameters: { word: 'hello' },
    context: { now: 0 },
  })
}

function secondData(body: unknown) {
  const result = interpretSecond(200, body)
  return 'data' in result ? result.data : assert.fail(result.responseClass.code)
}

test('the second source gets the word in lower case as a single segment, and has two ways of saying that it knows no such word', () => {
  const endpoint = second.endpoints['/define'] as Endpoint
  const parameters = endpoint.complete?.({ word: ' Ice Cream ' }, { now: 0 }) ?? {}
  assert.deepEqual(endpoint.request(parameters, { now: 0 }), { path: '/api/v1/entries/en/ice%20cream' })
  assert.deepEqual(interpretSecond(404, { message: 'Word not found' }), { responseClass: notFound() })
  assert.deepEqual(interpretSecond(200, { word: 'hello', entries: [] }), { responseClass: notFound() })
  const foreign = { language: { code: 'de' }, senses: [{ definition: 'A.' }] }
  assert.deepEqual(interpretSecond(200, { word: 'hello', entries: [foreign] }), { responseClass: notFound() })
  assert.deepEqual(interpretSecond(200, { word: 'hello' }), { responseClass: notFound() })
  for (const body of [{}, [], null, 'x', { entries: null }]) {
    assert.deepEqual(interpretSecond(200, body), { responseClass: invalid() })
  }
})
test('the code, the text or the name of the language shows that an entry of the second source is English', () => {
  const codeFor = (language: unknown) => {
    const result = interpretSecond(200, { entries: [{ language, senses: [{ definition: 'A.' }] }] })
    return 'data' in result ? 'English' : result.responseClass.code
  }
  for (const language of ['en', { code: 'en-US' }, { name: 'English' }, {}, null])
    assert.equal(codeFor(language), 'English')
  for (const language of ['fr', { code: 'enm' }, { name: 'French' }])
    assert.equal(codeFor(language), 'UPSTREAM_NOT_FOUND')
  const pronunciations = [
    { type: 'enpr', text: 'he' },
    { type: null, text: '/h/' },
  ]
  assert.equal(secondData({ entries: [{ pronunciations }] }).phonetic, '/h/')
})

test('every member of the second source may be missing', () => {
  assert.deepEqual(secondData({ entries: [{}] }), {
    ...{ word: 'hello', phonetic: null, audio_url: null, source_urls: [], license: null },
    meanings: [{ part_of_speech: null, definitions: [], synonyms: [], antonyms: [] }],
  })
  const senses = [
    { definition: 'A.' },
    {},
    { definition: '' },
    null,
    { definition: 'B.', examples: [], quotes: [{ text: 'Q.' }] },
  ]
  const { meanings } = secondData({ word: 'x', entries: [{ senses }] })
  assert.deepEqual((meanings as { definitions: unknown }[])[0]?.definitions, [
    { definition: 'A.', example: null, synonyms: [], antonyms: [] },
    { definition: 'B.', example: 'Q.', synonyms: [], antonyms: [] },
  ])
})

test('senses below a sense follow it, and the phonetic is the first phonetic in IPA', () => {
  const pronunciations = [
    { type: 'enPR', text: 'hĕ-lō′' },
    { type: 'ipa', text: '' },
    { type: 'ipa', text: '/x/' },
  ]
  const senses = [
    { definition: 'A.', subsenses: [{ definition: 'A1.', subsenses: [{ definition: 'A1a.' }] }] },
    { definition: 'B.' },
  ]
  const data = secondData({ word: 'x', entries: [{ pronunciations: [] }, { pronunciations, senses }] })
  assert.equal(data.phonetic, '/x/')
  const [, meaning] = data.meanings as { definitions: { definition: string }[] }[]
  assert.deepEqual(
    meaning?.definitions.map(({ definition }) => definition),
    ['A.', 'A1.', 'A1a.', 'B.'],
  )
})

test('an answer whose meanings cannot be read is invalid, and not a word without meanings', () => {
  const codeFor = (entry: object) => {
    const read = interpret(200, [{ word: 'a', ...entry }])
    return 'data' in read ? read.data.meanings : read.responseClass.code
  }
  for (const meanings of [
    { noun: [] },
    'a noun',
    ['A.'],
    [{ pos: 'noun' }],
    [{ partOfSpeech: 'noun', definitions: ['A.'] }],
  ])
    assert.equal(codeFor({ meanings }), 'UPSTREAM_INVALID_RESPONSE', JSON.stringify(meanings))
  for (const definition of [{ text: 'A.' }, { definition: { en: 'A.' } }])
    assert.equal(codeFor({ meanings: [{ definitions: [definition] }] }), 'UPSTREAM_INVALID_RESPONSE')
  assert.deepEqual(codeFor({ meanings: [] }), [])
  const second = (senses: unknown) => interpretSecond(200, { word: 'a', entries: [{ senses }] })
  assert.deepEqual(second([{ gloss: 'A.' }]), { responseClass: invalid() })
})

test('an audio without protocol or host gets both', () => {
  const audioOf = (audio: string) => interpretData([{ word: 'a', meanings: [], phonetics: [{ audio }] }]).audio_url
  assert.equal(audioOf('//ssl.gstatic.com/a.mp3'), 'https://ssl.gstatic.com/a.mp3')
  assert.equal(audioOf('/media/a.mp3'), 'https://api.dictionaryapi.dev/media/a.mp3')
  assert.equal(audioOf('http://a.example/a.mp3'), 'http://a.example/a.mp3')
})
