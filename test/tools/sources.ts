import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'

/**
 * Reads the source files of the project for the tests of its rules and for its figures: text,
 * imports, folders.
 */

export const ROOT = resolve(import.meta.dirname, '../..')

/** An import of a file: its target, and whether it imports only types. */
export interface Import {
  of: string
  isTypeOnly: boolean
}

export interface SourceFile {
  /** Relative to the project. */
  path: string
  text: string
  imports: Import[]
}

export async function readSources(...folders: string[]): Promise<SourceFile[]> {
  const lists = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(join(ROOT, folder), { recursive: true })
      return names.filter((name) => /\.(ts|mjs)$/.test(name)).map((name) => join(folder, name))
    }),
  )
  return await Promise.all(
    lists.flat().map(async (path) => {
      const text = await readFile(join(ROOT, path), 'utf8')
      return { path, text, imports: importsOf(path, text) }
    }),
  )
}

const STATIC = /^(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm
const DYNAMIC = /\b(?:import|fork)\(\s*(?:new URL\(\s*)?'([^']+)'/g

function importsOf(path: string, text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '')
  return [
    ...[...code.matchAll(STATIC)].map(([, type, name = '']) => ({ of: target(path, name), isTypeOnly: Boolean(type) })),
    ...[...code.matchAll(DYNAMIC)].map(([, name = '']) => ({ of: target(path, name), isTypeOnly: false })),
  ]
}

/** A file of ours by its path, anything else by its name. */
function target(path: string, name: string): string {
  return name.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(path), name)) : name
}

export const isOurs = (name: string): boolean => /^(src|workers|migrations|test)\//.test(name)

/** The imports that break a rule, as lines `importer -> imported`. */
export function offences(files: SourceFile[], isAllowed: (from: string, to: string) => boolean): string[] {
  return files.flatMap(({ path, imports }) =>
    imports.filter(({ of }) => !isAllowed(path, of)).map(({ of }) => `${path} -> ${of}`),
  )
}

/**
 * The folders of `src` from the ground up as src/README.md lists them; for `workers`, the folders
 * that workers/README.md lists.
 */
export async function listFolders(root: 'src' | 'workers' = 'src'): Promise<string[]> {
  const readme = await readFile(join(ROOT, root, 'README.md'), 'utf8')
  return [...readme.matchAll(/^\| `([a-z]+)` \|/gm)].map(([, folder = '']) => folder)
}

/**
 * Imports from a folder of `src` or `workers` to a folder below it in its README. Imports of types
 * count, because nobody can read a folder without the types that it names. Loose files of `src`
 * stand between the folders: errors.ts, log.ts and node-http.ts above catalog, context.ts above
 * mcp, the entry files at the end.
 */
export function upwardImports(files: SourceFile[], folders: string[], root: 'src' | 'workers' = 'src'): string[] {
  const order = [...folders]
  if (root === 'src') {
    order.splice(order.indexOf('catalog'), 0, 'errors', 'log', 'node-http')
    order.splice(order.indexOf('mcp'), 0, 'context')
  }
  const layerOf = (path: string): string => new RegExp(`^${root}/([a-z-]+)(?:/|\\.ts$)`).exec(path)?.[1] ?? 'entry'
  const rank = (path: string): number => (order.includes(layerOf(path)) ? order.indexOf(layerOf(path)) : order.length)
  return offences(
    files.filter(({ path }) => path.startsWith(`${root}/`)),
    (from, to) =>
      !to.startsWith(`${root}/`) ||
      layerOf(from) === layerOf(to) ||
      rank(to) < rank(from) ||
      rank(from) === order.length,
  )
}

/** A folder of `src` or `workers`, or a loose file. */
export const folderOf = (path: string): string => /^((?:src|workers)\/[^/]+)/.exec(path)?.[1] ?? path

/**
 * Import circles, each as `a -> b -> a`. Imports of types alone do not count, because they are gone
 * when the code runs.
 */
export function importCircles(files: SourceFile[], nodeOf: (path: string) => string = (path) => path): string[] {
  const graph = new Map<string, Set<string>>()
  for (const { path, imports } of files) {
    const targets = graph.get(nodeOf(path)) ?? new Set()
    for (const { of, isTypeOnly } of imports) {
      if (!isTypeOnly && isOurs(of) && nodeOf(of) !== nodeOf(path)) targets.add(nodeOf(of))
    }
    graph.set(nodeOf(path), targets)
  }
  const circles: string[] = []
  const done = new Set<string>()
  const visit = (node: string, trail: string[]): void => {
    if (trail.includes(node)) circles.push([...trail.slice(trail.indexOf(node)), node].join(' -> '))
    if (done.has(node) || trail.includes(node)) return
    for (const next of graph.get(node) ?? []) visit(next, [...trail, node])
    done.add(node)
  }
  for (const node of graph.keys()) visit(node, [])
  return circles
}

/** Lines in which TypeScript has Lua: calls of Redis as only a script makes them. */
export function luaLines({ path, text }: SourceFile): string[] {
  return text
    .split('\n')
    .filter((line) => /redis\.p?call\(|^\s*local \w+(, \w+)* = /.test(line))
    .map((line) => `${path}: ${line.trim()}`)
}

/** The number of lines that have a comment and nothing else. */
function countCommentLines(text: string): number {
  let isInside = false
  return text.split('\n').filter((line) => {
    const start = line.trim()
    const isComment = isInside || start.startsWith('/*') || start.startsWith('//')
    if (isInside || start.startsWith('/*')) isInside = !start.includes('*/')
    return isComment
  }).length
}

/** The lines that have a comment and nothing else, as percent of all lines. */
export function commentPercent(files: SourceFile[]): number {
  const sum = (count: (text: string) => number): number => files.reduce((total, { text }) => total + count(text), 0)
  return (100 * sum(countCommentLines)) / sum(countLines)
}

const CALL_PATH = /^(src\/routes\/call\.ts|src\/(admission|calls|queue|limits|caps)\/|workers\/)/

/** The source files on the path of a call. */
export const callPath = (files: SourceFile[]): SourceFile[] => files.filter(({ path }) => CALL_PATH.test(path))

export const countLines = (text: string): number => text.split('\n').length - 1
