import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Writes `count` OpenAPI documents, each with an API of a single endpoint, like a company with many
 * services.
 *
 * @returns their folder, for `UPSTREAMS_DIR`
 */
export async function writeOwnApis(count: number, upstreamUrl: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agw-own-apis-'))
  for (let number = 1; number <= count; number += 1) {
    const document = JSON.stringify(documentOf(`Service ${number}`, upstreamUrl))
    await writeFile(join(folder, `service-${number}.json`), document)
  }
  return folder
}

function documentOf(title: string, url: string): object {
  const schema = { type: 'object', properties: { text: { type: 'string', description: 'A fact' } } }
  const answer = { description: 'A fact', content: { 'application/json': { schema, example: { text: 'A fact.' } } } }
  return {
    openapi: '3.1.0',
    info: { title, version: '1.0.0', description: 'One of many services of a company.' },
    servers: [{ url }],
    'x-gateway': { baseUrl: url, caps: { concurrency: 256, rates: [{ max: 1_000_000, seconds: 1 }] } },
    paths: { '/fact': { get: { operationId: 'getFact', summary: 'A fact', responses: { 200: answer } } } },
  }
}
