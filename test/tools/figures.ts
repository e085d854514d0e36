import { join } from 'node:path'
import type { Node, SourceFile as ParsedFile } from 'typescript/unstable/ast'
import { isArrowFunction, isFunctionLikeDeclaration, isTypeNode } from 'typescript/unstable/ast/is'
import { API } from 'typescript/unstable/sync'
import {
  callPath,
  commentPercent,
  countLines,
  folderOf,
  importCircles,
  listFolders,
  luaLines,
  ROOT,
  readSources,
  type SourceFile,
  upwardImports,
} from './sources.ts'

/**
 * `node test/tools/figures.ts`: prints figures about the code of `src` and `workers`. It leaves out
 * upstreams, because they are data, and the files that browsers run.
 */

const FUNCTION_LINES_MAX = 60
const PARAMETERS_MAX = 3

interface FunctionFigures {
  place: string
  lines: number
  parameters: number
}

function main(sources: SourceFile[], folders: string[]): void {
  const sizes = sources.map(({ text }) => countLines(text)).sort((one, other) => one - other)
  const at = (share: number): number => sizes[Math.floor(share * (sizes.length - 1))] ?? 0
  print('files', sources.length)
  print('lines of a file: median / p95 / largest', `${at(0.5)} / ${at(0.95)} / ${at(1)}`)
  const byFolder = Object.groupBy(sources, ({ path }) => folderOf(path))
  for (const [folder, files = []] of Object.entries(byFolder).sort()) {
    if (files.length > 1) print(`comments, ${folder}`, commentShare(files))
  }
  print('comments, call path', commentShare(callPath(sources)))
  print('comments, all', commentShare(sources))
  const functions = listFunctions(sources)
  list(
    `functions of more than ${FUNCTION_LINES_MAX} lines, of ${functions.length}`,
    functions.filter(({ lines }) => lines > FUNCTION_LINES_MAX).map(({ place, lines }) => `${place}: ${lines}`),
  )
  list(
    `functions of more than ${PARAMETERS_MAX} parameters`,
    functions
      .filter(({ parameters }) => parameters > PARAMETERS_MAX)
      .map(({ place, parameters }) => `${place}: ${parameters}`),
  )
  list('lines of Lua in TypeScript', sources.flatMap(luaLines))
  list('imports that lead up', upwardImports(sources, folders))
  list('circles of files', importCircles(sources))
  list('circles of folders', importCircles(sources, folderOf))
}

function commentShare(files: SourceFile[]): string {
  const lines = files.reduce((sum, { text }) => sum + countLines(text), 0)
  return `${commentPercent(files).toFixed(1)} % of ${lines} lines`
}

/** The functions that have a body, by TypeScript's own parser. */
function listFunctions(sources: SourceFile[]): FunctionFigures[] {
  const api = new API({ cwd: ROOT })
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(ROOT, 'tsconfig.json')] }).getProjects()
    return sources.flatMap(({ path }) => {
      const file = project?.program.getSourceFile(join(ROOT, path))
      return file === undefined ? [] : functionsOf(file, path)
    })
  } finally {
    api.close()
  }
}

function functionsOf(file: ParsedFile, path: string): FunctionFigures[] {
  const found: FunctionFigures[] = []
  const visit = (node: Node): void => {
    if (isTypeNode(node)) return
    if ((isFunctionLikeDeclaration(node) || isArrowFunction(node)) && node.body !== undefined) {
      const [first, last] = [node.getStart(file), node.end].map(
        (position) => file.getLineAndCharacterOfPosition(position).line,
      )
      const lines = (last ?? 0) - (first ?? 0) + 1
      found.push({ place: `${path}:${(first ?? 0) + 1}`, lines, parameters: node.parameters.length })
    }
    node.forEachChild(visit)
  }
  visit(file)
  return found
}

function print(what: string, figure: string | number): void {
  console.log(`${what.padEnd(48)} ${figure}`)
}

function list(what: string, places: string[]): void {
  print(what, places.length)
  for (const place of places) console.log(`  ${place}`)
}

const sources = await readSources('src', 'workers')
main(
  sources.filter(({ path }) => !/^src\/upstreams\/|\/browser\//.test(path)),
  await listFolders(),
)
