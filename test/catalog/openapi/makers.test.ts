import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { CLIENT_TYPES } from '../../../src/catalog/openapi/load-folder.ts'
import { check, document, words } from '../../support/own-document.ts'

const FOLDER = new URL('../../own/makers/', import.meta.url)

/**
 * The operations that the gateway offers of each document, and how many lines explain the rest, by
 * file.
 */
const MAKERS: Record<string, { offers: string; lines: number; says: RegExp[] }> = {
  'fastapi.json': {
    offers: 'GET /read-items-items-get',
    lines: 3,
    says: [
      /parameter authorization is left out: the gateway sends it/,
      /POST whose effect is not stated/,
      /multipart\/form-data is no JSON/,
    ],
  },
  'spring.json': {
    offers: 'GET /find-all-1, GET /health',
    lines: 3,
    says: [/required parameter pageable is neither a plain value/, /\/servers\/0\/url: The address is private/],
  },
  'nswag.json': { offers: 'GET /entries-get-entry, GET /entries-get-all, POST /entries-put', lines: 0, says: [] },
  'payments.yaml': {
    offers: 'GET /get-charges',
    lines: 4,
    says: [
      /parameter created is left out: it has the style deepObject/,
      /~1charges\/post\/requestBody: .*x-www-form-urlencoded is no JSON/,
    ],
  },
  'code-host.yaml': {
    offers: 'GET /meta-root, GET /issues-list-for-repo',
    lines: 2,
    says: [/\/responses\/302: The operation is left out: its answers are redirects/, /its answer is text\/html/],
  },
  'cluster.json': {
    offers: 'GET /list-core-v1-namespaced-pod, GET /get-healthz',
    lines: 1,
    says: [/uniqueItems does not validate here and at 2 other places/],
  },
  'messages.yaml': {
    offers: 'GET /list-message, GET /fetch-status',
    lines: 4,
    says: [
      /DateSent< is left out/,
      /\/post\/requestBody: The operation is left out/,
      /\/paths\/~1Media\/servers: .*a server of its own/,
    ],
  },
  'pets.yaml': { offers: 'GET /list-pets, POST /create-pet', lines: 1, says: [/prefixItems does not validate/] },
  'odata.yaml': {
    offers: 'GET /products-list-product, GET /products-get-product',
    lines: 3,
    says: [/If-Match is left out/, /multipart\/mixed;boundary=request-separator is no JSON/],
  },
  'rails.yaml': { offers: 'GET /get-blogs, POST /post-blogs', lines: 0, says: [] },
  'go.yaml': {
    offers: '',
    lines: 2,
    says: [
      /\/servers\/0\/url: The address \/\/inventory\.example\.com\/v1 is no http/,
      /DELETE whose effect is not stated/,
    ],
  },
  'webhooks.yaml': { offers: '', lines: 1, says: [/\/paths: The document must have an object paths: webhooks/] },
}

describe('documents as different makers write them', () => {
  it('a document of each maker is offered as far as it can be, and each part that is left out is said', async () => {
    assert.deepEqual((await readdir(FOLDER)).sort(), Object.keys(MAKERS).sort())
    for (const [name, { offers, lines, says }] of Object.entries(MAKERS)) {
      const settings = { caps: { concurrency: 4, rates: [{ max: 5, seconds: 1 }] } }
      const written = { 'x-gateway': settings, ...parse(await readFile(new URL(name, FOLDER), 'utf8')) }
      const answer = await check(written, name)
      const offered = (answer.entry?.endpoints ?? []).map(({ method, path }) => `${method} ${path}`)
      assert.equal(offered.join(', '), offers, `${name}: ${words(answer)}`)
      const said = words(answer)
      for (const pattern of says) assert.match(said, pattern, name)
      assert.equal(said.split('\n').filter((line) => line !== '').length, lines, `${name}: ${said}`)
    }
  })

  it('the example of an answer is the example of the document, also as the text of its JSON, or is made', async () => {
    const text = await check(document({ media: { example: '{"a":"x"}' } }))
    assert.equal(words(text), '')
    assert.equal(text.entry?.endpoints[0]?.example, 'document')
    assert.equal((await check(document())).entry?.endpoints[0]?.example, 'made')
  })

  it('an endpoint has no name that the clients need for themselves', async () => {
    for (const [file, comment] of [
      ['runtime.ts', /^ *(\/\/|\/?\*).*$/gm],
      ['runtime-answers.ts', /^ *(\/\/|\/?\*).*$/gm],
      ['runtime.py', /#.*$/gm],
      ['runtime_answers.py', /#.*$/gm],
      ['runtime_async.py', /#.*$/gm],
      ['runtime_transport.py', /#.*$/gm],
    ] as const) {
      const source = await readFile(new URL(`../../../src/clients/${file}`, import.meta.url), 'utf8')
      const code = source.replace(comment, '').replace(/"""[\s\S]*?"""|`[^`]*`|'[^'\n]*'|"[^"\n]*"/g, '')
      const named = code.match(/(?<![.\w])[A-Z][a-z]\w+(?= *[<(.\]|,:)=&]|$)/gm) ?? []
      const missing = [...new Set(named)].filter((name) => !CLIENT_TYPES.includes(name))
      assert.deepEqual(missing, [], file)
    }
  })
})
