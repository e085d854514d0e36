/**
 * `npm run record -- <api>`: writes into the recordings of an API the data that its fields read
 * from each recorded answer, so that nobody types the data. Review the difference as you would
 * review code. With `--key`, a running gateway first fetches a new answer for each endpoint.
 */
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { queryOf } from '../../src/catalog/example-call.ts'
import { apiSlugOf, FALLBACK, fallbackUpstream } from '../../src/catalog/fallback.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { Recording } from '../../src/catalog/upstream-file.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'
import { completed, contextAt, endpointAt } from '../support/upstream-call.ts'
import { ROOT } from './sources.ts'

/** The recordings of an API by the paths of its endpoints, in the form of their file. */
export type Recordings = Record<string, Recording>

/**
 * Returns the recordings with the data that the upstream's file reads from them now.
 *
 * @throws Error with the name of the endpoint if the file reads no data from its recorded answer
 */
export function withData(upstream: Upstream, recordings: Recordings): Recordings {
  const entries = Object.entries(recordings).map(([path, recording]): [string, Recording] => {
    const { parameters: given, now, response } = recording
    const endpoint = endpointAt(upstream, path)
    const context = contextAt(endpoint, now)
    const parameters = completed(endpoint, given, context)
    const bodies = Array.isArray(endpoint.request(parameters, context)) ? (response as unknown[]) : [response]
    const answers = bodies.map((body) => ({ status: 200, headers: {}, body }))
    const read = interpretAnswers({ upstream, endpoint }, answers, { parameters, context })
    if (!('data' in read))
      throw new Error(`${path}: the recorded answer is ${read.responseClass.code}`, { cause: read.cause })
    return [path, { ...recording, data: read.data }]
  })
  return Object.fromEntries(entries)
}

/** Fetches an answer of the upstream for each recording, through the gateway at `url`. */
export async function withAnswers(
  slug: string,
  recordings: Recordings,
  { url, key }: { url: string; key: string },
): Promise<Recordings> {
  const fresh: Recordings = {}
  for (const [path, recording] of Object.entries(recordings)) {
    const response = await fetch(`${url}/v1/call/${slug}${path}?${queryOf(recording.parameters)}`, {
      headers: { 'x-api-key': key, accept: 'application/vnd.upstream+json' },
    })
    const body: unknown = await response.json()
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
    fresh[path] = { ...recording, ...(recording.now && { now: new Date().toISOString() }), response: body }
  }
  return fresh
}

async function record(name: string, gateway: { url: string; key: string } | undefined): Promise<void> {
  const upstream = (await loadUpstreams([apiSlugOf(name)])).get(apiSlugOf(name))
  const source = upstream && name.endsWith(FALLBACK) ? fallbackUpstream(upstream) : upstream
  if (!source) throw new Error(`There is no API with the name ${name}.`)
  const path = join(ROOT, 'src/upstreams/recordings', `${name}.json`)
  const recordings: Recordings = JSON.parse(await readFile(path, 'utf8'))
  const answered = gateway ? await withAnswers(name, recordings, gateway) : recordings
  await writeFile(path, JSON.stringify(withData(source, answered)))
  execFileSync(join(ROOT, 'node_modules/.bin/biome'), ['format', '--write', path])
  console.log(`${relative(ROOT, path)}: ${Object.keys(recordings).join(', ')} written; review it with git diff`)
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { url: { type: 'string', default: 'http://localhost:3000' }, key: { type: 'string' } },
    allowPositionals: true,
  })
  const { url, key } = values
  for (const name of positionals) await record(name, key === undefined ? undefined : { url, key })
}
