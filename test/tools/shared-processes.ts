import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { memoize } from '../../src/async/memoize.ts'

/**
 * What a test file contains if it listens to its process, measures its memory, or changes which
 * certificates it trusts. Its tests would find what other files left behind.
 */
const NEEDS_OWN_PROCESS = /process\.on\(|memoryUsage|setDefaultCACertificates/

const importsOf = memoize(
  (file: string) => file,
  (file) =>
    [...readFileSync(file, 'utf8').matchAll(/ from '(\.[^']+)'/g)].map(([, path = '']) => join(dirname(file), path)),
)

/** Whether a file of the tests is such a file, or imports it, directly or by other test files. */
export function reaches(file: string, isSuch: (path: string) => boolean, seen = new Set<string>()): boolean {
  if (isSuch(file)) return true
  if (!file.startsWith('test/') || seen.has(file)) return false
  seen.add(file)
  return importsOf(file).some((path) => reaches(path, isSuch, seen))
}

const canShareProcess = (file: string): boolean => !NEEDS_OWN_PROCESS.test(readFileSync(file, 'utf8'))

/** Name of a mark in the folder of the lists. If it is there, no further file begins. */
const ENDED = 'ended'

/** Lets the processes end the files that they have begun, and begin no other. */
export const endSharing = (folder: string): void => writeFileSync(join(folder, ENDED), '')

/** Whether no file of this list is to begin. */
export const hasSharingEnded = (list: string): boolean => existsSync(join(dirname(list), ENDED))

/**
 * Spreads test files over processes. A process that imports the gateway and compiles what it runs
 * costs more than most files do, so a few processes share the files, and each takes the next file
 * of the list when its file has ended. A file that needs a process of its own gets it.
 *
 * @param files the slowest first
 * @param folder gets the lists, and a file for each process, which takes files of a list
 * @param count of processes at one time
 * @returns the files of the processes, to run in this order
 */
export function shareProcesses(files: string[], folder: string, count: number): string[] {
  const { shared = [], alone = [] } = Object.groupBy(files, (file) => (canShareProcess(file) ? 'shared' : 'alone'))
  const takeFiles = new URL('../support/take-files.ts', import.meta.url).href
  const processesOf = (name: string, files: string[], count: number): string[] => {
    const list = join(folder, `${name}.json`)
    writeFileSync(list, JSON.stringify(files.map((file) => pathToFileURL(resolve(file)).href)))
    return Array.from({ length: count }, (_, index) => {
      const process = join(folder, `${name}-${index + 1}.test.mjs`)
      writeFileSync(process, `import { takeFiles } from '${takeFiles}'\nawait takeFiles(${JSON.stringify(list)})\n`)
      return process
    })
  }
  const sharing = processesOf('shared', shared, count)
  // Files with a process of their own run beside all but the first process, until none is left.
  const own = alone.flatMap((file, index) => processesOf(`alone-${index + 1}`, [file], 1))
  return [...sharing.slice(0, 1), ...own, ...sharing.slice(1)]
}
