import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { memoize } from '../../src/async/memoize.ts'

/**
 * Matches a test file that listens to its process, measures its memory, or changes which
 * certificates it trusts. In a shared process its tests would find what other files left behind.
 */
const NEEDS_OWN_PROCESS = /process\.on\(|memoryUsage|setDefaultCACertificates/

/**
 * The files of this project that a file imports. A text of a test may look like an import of a file
 * that does not exist, and the command line may name a pattern in place of a file.
 */
const importsOf = memoize(
  (file: string) => file,
  (file) =>
    [...(existsSync(file) ? readFileSync(file, 'utf8') : '').matchAll(/ from '(\.[^']+)'/g)].map(([, path = '']) =>
      join(dirname(file), path),
    ),
)

/**
 * Whether a file of the tests satisfies `isSuch`, or imports a file that does, directly or through
 * other test files.
 */
export function reaches(file: string, isSuch: (path: string) => boolean, seen = new Set<string>()): boolean {
  if (isSuch(file)) return true
  if (!file.startsWith('test/') || seen.has(file)) return false
  seen.add(file)
  return importsOf(file).some((path) => reaches(path, isSuch, seen))
}

const canShareProcess = (file: string): boolean => !NEEDS_OWN_PROCESS.test(readFileSync(file, 'utf8'))

/** Name of a file in the folder of the lists. If the file exists, no further test file begins. */
const ENDED = 'ended'

/** Lets the processes end the test files that they have begun, and begin no other. */
export const endSharing = (folder: string): void => writeFileSync(join(folder, ENDED), '')

/** Whether no further file of this list may begin. */
export const hasSharingEnded = (list: string): boolean => existsSync(join(dirname(list), ENDED))

/**
 * Spreads test files over processes. To import and compile the gateway costs a process more than
 * most files do. So a few processes share the files, and each process takes the next file of the
 * list when its file has ended. A file that needs a process of its own gets it. Spare processes
 * take a file only while a processor is idle, because files wait for windows and leases now and
 * then, and some files do little else.
 *
 * @param files the slowest first
 * @param folder where the lists are written, and for each process a file that takes test files of a
 *   list
 * @param count how many processes run at the same time, and how many spare processes beside them
 * @returns the files of the processes, to run in this order
 */
export function shareProcesses(files: string[], folder: string, count: { usual: number; spare: number }): string[] {
  const { shared = [], alone = [] } = Object.groupBy(files, (file) => (canShareProcess(file) ? 'shared' : 'alone'))
  const takeFiles = new URL('../support/take-files.ts', import.meta.url).href
  const listOf = (name: string, files: string[]): string => {
    const list = join(folder, `${name}.json`)
    writeFileSync(list, JSON.stringify(files.map((file) => pathToFileURL(resolve(file)).href)))
    return list
  }
  const processesOf = (list: string, count: number, isSpare = false): string[] =>
    Array.from({ length: count }, (_, index) => {
      const process = list.replace(/\.json$/, `-${isSpare ? 'spare-' : ''}${index + 1}.test.mjs`)
      const taking = `await takeFiles(${JSON.stringify(list)}, { isSpare: ${isSpare} })`
      writeFileSync(process, `import { takeFiles } from '${takeFiles}'\n${taking}\n`)
      return process
    })
  const list = listOf('shared', shared)
  const usual = processesOf(list, count.usual)
  const spare = processesOf(list, count.spare, true)
  // The files with a process of their own run beside the first shared process. The other shared
  // processes begin when no such file is left.
  const own = alone.flatMap((file, index) => processesOf(listOf(`alone-${index + 1}`, [file]), 1))
  // The results of the first process are shown while it runs, and the results of the others when
  // the processes before them have ended.
  return [...usual.slice(0, 1), ...spare, ...own, ...usual.slice(1)]
}
