import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ConfigError } from '../../config.ts'
import { endpointWords, pascal } from '../type-name.ts'
import type { Upstream } from '../upstream.ts'
import { mapDocument } from './map-document.ts'
import { applyOverlay } from './overlay.ts'
import { FILE_BYTES_MAX, readText } from './read-text.ts'
import { type Finding, Findings, findingLine, Unreadable } from './report.ts'

const DOCUMENT = /^(.+?)\.(yaml|yml|json)$/
const OVERLAY = /\.overlay\.(yaml|yml|json)$/

/** The form of a slug, the same as for built-in APIs, short enough for names of tools. */
const SLUG = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/
const SLUG_MAX = 40

/** Slugs that keys in Redis, clients or settings of the environment use for something else. */
const RESERVED =
  /^(?:processes|stats|upstream-settings|console|memory|usage|sign-ins|login|throttle|lane|call|calls|constructor|prototype|reply-.*|.*-fallback)$/

/** The result of reading one document. */
export interface ReadDocument {
  slug: string
  /** Undefined if the document has errors. */
  upstream: Upstream | undefined
  findings: Findings
}

/** A folder has documents that cannot be served. The message has a line for each error. */
export class DocumentsError extends ConfigError {
  constructor(lines: string[]) {
    super(`UPSTREAMS_DIR has documents that cannot be served:\n${lines.join('\n')}`)
    this.name = 'DocumentsError'
  }
}

/** The result of reading a folder of documents. */
export interface ReadFolder {
  documents: ReadDocument[]
  /** Errors of files that belong to no document. */
  strays: Finding[]
}

/**
 * Reads every document of a folder, by slug.
 *
 * @throws DocumentsError if a document has errors. A gateway that served only some of its
 *   operator's APIs would fail later, for callers.
 */
export async function loadFolder(folder: string, builtIn: BuiltIn): Promise<Map<string, Upstream>> {
  const { documents, strays } = await readFolder(folder, builtIn)
  const errors = [...documents.flatMap(({ findings }) => findings.errors), ...strays]
  if (errors.length > 0) throw new DocumentsError(errors.map(findingLine))
  return new Map(documents.flatMap(({ slug, upstream }) => (upstream ? [[slug, upstream]] : [])))
}

/**
 * Reads every document of a folder, and reports conflicts between documents.
 *
 * @throws DocumentsError if the folder cannot be read
 */
export async function readFolder(folder: string, { slugs, upstreams: others }: BuiltIn): Promise<ReadFolder> {
  const names = (
    await readdir(folder).catch((cause: Error) => {
      throw new DocumentsError([`UPSTREAMS_DIR: the folder ${folder} cannot be read: ${Reflect.get(cause, 'code')}`])
    })
  ).sort()
  const overlays = names.filter((name) => OVERLAY.test(name))
  const files = names.filter((name) => DOCUMENT.test(name) && !OVERLAY.test(name))
  const taken = takenNames(others)
  const documents: ReadDocument[] = []
  for (const name of files) {
    const slug = slugOf(name)
    const [overlay, second] = overlays.filter((other) => other.replace(OVERLAY, '') === slug)
    const read = await readDocument(join(folder, name), {
      overlay: overlay === undefined ? undefined : join(folder, overlay),
      ...{ builtIn: slugs, taken },
    })
    if (files.some((other) => other !== name && slugOf(other) === slug))
      read.findings.error([], `Another file has the slug ${slug} too. Rename or remove one of the files.`)
    if (second !== undefined)
      read.findings.error([], `The document has two overlays, ${overlay} and ${second}. Remove one of them.`)
    documents.push(read)
  }
  const strays = overlays.flatMap((file) => {
    const slug = file.replace(OVERLAY, '')
    if (files.some((document) => slugOf(document) === slug)) return []
    const text = `The folder has no document ${slug}.yaml, ${slug}.yml or ${slug}.json for this overlay.`
    return [{ file, line: 0, pointer: '', text }]
  })
  return { documents, strays }
}

/** The built-in upstreams: all slugs, and the upstreams that are served. */
export interface BuiltIn {
  slugs: readonly string[]
  upstreams: ReadonlyMap<string, Upstream>
}

/** The client and tool names that are taken by endpoints of upstreams. */
export function takenNames(upstreams: ReadonlyMap<string, Upstream>): Map<string, string> {
  const taken = new Map<string, string>()
  for (const [slug, { endpoints }] of upstreams) {
    for (const path of Object.keys(endpoints)) taken.set(clientName(slug, path), `${slug}${path}`)
  }
  return taken
}

/** The client name of an endpoint. `a-b/c` and `a/b-c` have the same name. */
const clientName = (slug: string, path: string): string => pascal(endpointWords(slug, path)).toLowerCase()

/**
 * Adds the client names of a document's endpoints to the taken names, and reports each name that
 * another endpoint already has.
 */
function takeNames(
  { endpoints }: Upstream,
  { slug, findings }: { slug: string; findings: Findings },
  names: Map<string, string>,
): void {
  for (const path of Object.keys(endpoints)) {
    const name = clientName(slug, path)
    const other = names.get(name)
    names.set(name, `${slug}${path}`)
    if (other === undefined) continue
    const text = `The endpoint ${path.slice(1)} has the same name as ${other} in the generated clients; set x-gateway.name.`
    findings.error(['paths'], text)
  }
}

/**
 * Reads one document with its overlay. It fetches nothing and never throws, whatever the files
 * hold.
 *
 * @param options.taken client names that are taken; the names of the document are added
 */
export async function readDocument(
  file: string,
  { overlay, builtIn, taken }: { overlay: string | undefined; builtIn: readonly string[]; taken: Map<string, string> },
): Promise<ReadDocument> {
  const slug = slugOf(basename(file))
  const findings = new Findings(basename(file))
  const problem = slugProblem(slug, builtIn)
  if (problem !== undefined) findings.error([], problem)
  try {
    const root = await readFileText(file, findings)
    const merged = overlay === undefined ? root : applyOverlay(root, await readFileText(overlay, findings), findings)
    // If the overlay does not fit the document, the document alone is not what the operator wants.
    if (findings.errors.length > 0 && problem === undefined) return { slug, findings, upstream: undefined }
    const upstream = mapDocument(slug, merged, findings)
    if (upstream) takeNames(upstream, { slug, findings }, taken)
    return { slug, findings, upstream: findings.errors.length === 0 ? upstream : undefined }
  } catch (error) {
    if (error instanceof Unreadable) return { slug, findings, upstream: undefined }
    throw error
  }
}

async function readFileText(file: string, findings: Findings): Promise<unknown> {
  const name = basename(file)
  const refuse = (text: string): never => {
    findings.errorAt({ file: name, line: 0 }, text)
    throw new Unreadable(text)
  }
  try {
    const info = await stat(file)
    // Reading a pipe would never end, and a file that is too large is not read at all.
    if (!info.isFile()) return refuse('This is a folder, a device or a pipe, and not a file.')
    if (info.size > FILE_BYTES_MAX) {
      const megabytes = Math.ceil(info.size / 1_048_576)
      return refuse(`The file has ${megabytes} MB, and a file may have at most ${FILE_BYTES_MAX / 1_048_576} MB.`)
    }
    return readText(name, await readFile(file), findings)
  } catch (error) {
    if (error instanceof Unreadable) throw error
    const code = error instanceof Error ? Reflect.get(error, 'code') : undefined
    if (typeof code !== 'string') throw error
    return refuse(code === 'ENOENT' ? 'The file does not exist.' : `The file cannot be read: ${code}.`)
  }
}

/** The slug of a document: its file name without the ending. */
export function slugOf(fileName: string): string {
  return fileName.replace(/\.(yaml|yml|json)$/, '')
}

function slugProblem(slug: string, builtIn: readonly string[]): string | undefined {
  if (!SLUG.test(slug) || slug.length > SLUG_MAX) {
    return `The name of the file must be a slug: lower-case words joined by hyphens, at most ${SLUG_MAX} characters, such as orders.yaml.`
  }
  if (builtIn.includes(slug)) return `The gateway has a built-in API ${slug}. Give the file another name.`
  return RESERVED.test(slug) ? `The slug ${slug} is reserved. Give the file another name.` : undefined
}
