import { access } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { builtInSlugs, createApi, loadUpstreams } from '../catalog/catalog.ts'
import type { ApiEntry } from '../catalog/catalog-answer.ts'
import { toEntry } from '../catalog/catalog-entry.ts'
import type { Effect } from '../catalog/endpoint.ts'
import { capWords, spanWords } from '../catalog/limit-words.ts'
import { readDocument, slugOf, takenNames } from '../catalog/openapi/load-folder.ts'
import { type Finding, findingLine } from '../catalog/openapi/report.ts'
import type { Upstream } from '../catalog/upstream.ts'
import { textTable } from './text-table.ts'

/** What the gateway makes of a document, for programs. */
export interface CheckAnswer {
  ok: boolean
  slug: string
  errors: Finding[]
  leftOut: Finding[]
  /**
   * The entry of the catalog; its health score is unknown and so 0. Null when the document has
   * errors.
   */
  entry: ApiEntry | null
  effects: Record<string, Effect>
}

/**
 * Reads a document as a process of the gateway would, and needs none.
 *
 * @param overlay absent: the overlay beside the document, if there is one
 */
export async function checkDocument(
  file: string,
  overlay: string | undefined,
): Promise<{ answer: CheckAnswer; text: string }> {
  const builtIn = await builtInSlugs()
  const { slug, upstream, findings } = await readDocument(file, {
    overlay: overlay ?? (await overlayBeside(file)),
    builtIn,
    taken: takenNames(await loadUpstreams()),
  })
  const { errors, leftOut } = findings
  const api = upstream && createApi(slug, upstream, { settings: new Map(), isOperatorNamed: false })
  const endpoints = Object.entries(upstream?.endpoints ?? {})
  const answer: CheckAnswer = {
    ok: errors.length === 0,
    slug,
    errors,
    leftOut,
    entry: api ? toEntry(api, 0) : null,
    effects: Object.fromEntries(endpoints.map(([path, { effect = 'read' }]) => [path, effect])),
  }
  return { answer, text: [...entryText(answer, upstream), ...findingsText(answer)].join('\n') }
}

async function overlayBeside(file: string): Promise<string | undefined> {
  const slug = slugOf(basename(file))
  for (const ending of ['yaml', 'yml', 'json']) {
    const overlay = join(dirname(file), `${slug}.overlay.${ending}`)
    const isThere = await access(overlay).then(
      () => true,
      () => false,
    )
    if (isThere) return overlay
  }
  return undefined
}

function entryText({ entry, effects }: CheckAnswer, upstream: Upstream | undefined): string[] {
  if (!entry || !upstream) return []
  const { caps, credential, probe, baseUrl, own } = upstream
  const key = credential
    ? `${credential.name} in the ${credential.in}, from ${credential.accessMode === 'platform_managed' ? 'the operator' : credential.accessMode === 'byok_required' ? 'each caller' : 'the operator or a caller'}`
    : 'none'
  const rows = entry.endpoints.map(({ path, method, description, params }) => {
    const names = Object.entries(params).map(([name, { required }]) => (required ? name : `${name}?`))
    const { origin = 'recorded' } = upstream.endpoints[path]?.example ?? {}
    return [`${method} ${path}`, effects[path] ?? 'read', names.join(' '), origin, description ?? '']
  })
  return [
    `${entry.api_name}: ${entry.display_name}`,
    `  ${entry.description}`,
    `  Address: ${baseUrl}${own?.mayBePrivate ? ' (may be private)' : ''}`,
    `  Key: ${key}`,
    `  Cap: ${capWords(caps)}. Tier: ${entry.tier_required}. Category: ${entry.category}. Tags: ${entry.tags.join(', ') || 'none'}`,
    `  Probe: ${probe.request.path} every ${spanWords(probe.everySeconds)}`,
    '',
    textTable(['Endpoint', 'Effect', 'Parameters', 'Example', 'What'], rows, { whole: ['Endpoint'] }),
  ]
}

function findingsText({ errors, leftOut }: CheckAnswer): string[] {
  const part = (title: string, findings: Finding[]): string[] =>
    findings.length === 0 ? [] : ['', title, ...findings.map((finding) => `  ${findingLine(finding)}`)]
  return [
    ...part('Left out:', leftOut),
    ...part('Errors, with which no process starts:', errors),
    '',
    errors.length === 0
      ? 'The document can be served.'
      : `${errors.length === 1 ? 'One error' : `${errors.length} errors`}: the document cannot be served.`,
  ]
}
