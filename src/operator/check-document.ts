import { access, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { builtInSlugs, createApi, loadUpstreams } from '../catalog/catalog.ts'
import { toEntry } from '../catalog/catalog-entry.ts'
import type { ApiEntry } from '../catalog/catalog-schema.ts'
import type { Effect } from '../catalog/endpoint.ts'
import { capWords, spanWords } from '../catalog/limit-words.ts'
import { type ReadDocument, readDocument, readFolder, slugOf, takenNames } from '../catalog/openapi/load-folder.ts'
import { type Finding, findingLine } from '../catalog/openapi/report.ts'
import type { Upstream } from '../catalog/upstream.ts'
import { UsageError } from './command-line.ts'
import { textTable } from './text-table.ts'

/** The result of checking a document, for programs. */
export interface CheckAnswer {
  ok: boolean
  slug: string
  errors: Finding[]
  leftOut: Finding[]
  /**
   * The API as the catalog will list it. Its health score is 0, because it is unknown. Null if the
   * document has errors.
   */
  entry: ApiEntry | null
  effects: Record<string, Effect>
}

/** The result of checking a folder, for programs. */
export interface CheckFolderAnswer {
  ok: boolean
  documents: CheckAnswer[]
  /** Errors of files that belong to no document. */
  errors: Finding[]
}

/**
 * Checks a document, or all documents of a folder, as a process of the gateway would. No process
 * needs to run. Conflicts between documents of a folder are errors.
 *
 * @param overlay absent: the overlay beside the document, if there is an overlay
 * @throws UsageError if `overlay` is given for a folder, or if the folder has no document
 */
export async function checkPath(
  path: string,
  overlay: string | undefined,
): Promise<{ answer: CheckAnswer | CheckFolderAnswer; text: string }> {
  const isFolder = await stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  )
  if (!isFolder) return await checkDocument(path, overlay)
  if (overlay !== undefined)
    throw new UsageError('--overlay needs a single document, and this is a folder of documents.')
  return await checkFolder(path)
}

async function checkFolder(folder: string): Promise<{ answer: CheckFolderAnswer; text: string }> {
  const builtIn = { slugs: await builtInSlugs(), upstreams: await loadUpstreams() }
  const { documents, strays } = await readFolder(folder, builtIn)
  // A process starts with such a folder, but whoever checks it looks into the wrong folder.
  if (documents.length + strays.length === 0)
    throw new UsageError(`The folder ${folder} has no document: no name of a file ends with .yaml, .yml or .json.`)
  const answers = documents.map(answerOf)
  const wrong = answers.filter(({ ok }) => !ok).length
  const ok = wrong === 0 && strays.length === 0
  const counts = [
    ...(wrong > 0 ? [`${wrong} of ${documents.length} documents have errors`] : []),
    ...(strays.length === 1 ? ['1 overlay has no document'] : []),
    ...(strays.length > 1 ? [`${strays.length} overlays have no document`] : []),
  ]
  const lines = [
    ...documents.flatMap(({ upstream }, index) => {
      const answer = answers[index]
      return answer ? [`── ${answer.slug}`, ...entryText(answer, upstream), ...findingsText(answer), ''] : []
    }),
    ...strays.map(findingLine),
    ok
      ? `${documents.length === 1 ? '1 document' : `${documents.length} documents`} can be served.`
      : `No process starts with this folder, because ${counts.join(' and ')}.`,
  ]
  return { answer: { ok, documents: answers, errors: strays }, text: lines.join('\n') }
}

/** As `checkPath`, for one document. */
export async function checkDocument(
  file: string,
  overlay: string | undefined,
): Promise<{ answer: CheckAnswer; text: string }> {
  const read = await readDocument(file, {
    overlay: overlay ?? (await overlayBeside(file)),
    builtIn: await builtInSlugs(),
    taken: takenNames(await loadUpstreams()),
  })
  const answer = answerOf(read)
  return { answer, text: [...entryText(answer, read.upstream), ...findingsText(answer)].join('\n') }
}

function answerOf({ slug, upstream, findings: { errors, leftOut } }: ReadDocument): CheckAnswer {
  const api =
    upstream && errors.length === 0
      ? createApi(slug, upstream, { settings: new Map(), isOperatorNamed: false })
      : undefined
  const endpoints = Object.entries(upstream?.endpoints ?? {})
  return {
    ok: errors.length === 0,
    slug,
    errors,
    leftOut,
    entry: api ? toEntry(api, 0) : null,
    effects: Object.fromEntries(endpoints.map(([path, { effect = 'read' }]) => [path, effect])),
  }
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
    ...part('Errors. No process starts with this document:', errors),
    '',
    errors.length === 0
      ? 'The document can be served.'
      : `${errors.length === 1 ? 'One error' : `${errors.length} errors`}: the document cannot be served.`,
  ]
}
