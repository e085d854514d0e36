import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { memoize } from '../../src/async/memoize.ts'

export interface MeasuredFile {
  /** From the folder of the project. */
  file: string
  /** How long it takes, or may take. */
  seconds: number
}

/**
 * Seconds of the test files that run in one process, at most: no process is to be the last by far,
 * and on a slow machine it must end within the time of a file.
 */
const JOINED_SECONDS_MAX = 50

/** A test file that takes longer has a process of its own. */
const QUICK_SECONDS_MAX = 30

/**
 * Test files that change or measure their process, or start processes. What they leave behind is
 * nothing that another file should find.
 */
const NEEDS_OWN_PROCESS =
  /node:child_process|process\.on|memoryUsage|setDefaultCACertificates|start(Web)?Process|execPath/

/** Folders whose tests start programs, or read and write files of the project. */
const OWN_PROCESS_FOLDERS = /^test\/(local|tools|deploy|clients|catalog|pages|docs)\//

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

/** Whether a test file can run after others in one process: its gateways, if any, are inside it. */
function canShareProcess(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  if (OWN_PROCESS_FOLDERS.test(file) || NEEDS_OWN_PROCESS.test(text)) return false
  if (reaches(file, (path) => path === 'test/support/browser.ts')) return false
  const mayStartProcesses = file.startsWith('test/system/') || /start(Gateway|Stage)\(/.test(text)
  return !mayStartProcesses || text.includes('isLocal: true')
}

/**
 * Joins quick test files to files that import several. A process that imports the gateway and
 * compiles what it runs costs more than most of their tests do.
 *
 * @param folder gets the files that import others
 * @returns what is to be run: files with a process of their own, and joined files
 */
export function joinQuickFiles(files: MeasuredFile[], folder: string): MeasuredFile[] {
  const isQuick = ({ file, seconds }: MeasuredFile) => seconds <= QUICK_SECONDS_MAX && canShareProcess(file)
  const { quick = [], alone = [] } = Object.groupBy(files, (one) => (isQuick(one) ? 'quick' : 'alone'))
  const groups: { members: string[]; seconds: number }[] = []
  for (const { file, seconds } of quick) {
    const group = groups.find((candidate) => candidate.seconds + seconds <= JOINED_SECONDS_MAX)
    if (group === undefined) groups.push({ members: [file], seconds })
    else {
      group.members.push(file)
      group.seconds += seconds
    }
  }
  const joined = groups.map(({ members, seconds }, index) => {
    const file = join(folder, `joined-${index + 1}.test.mjs`)
    writeFileSync(file, members.map((member) => `import '${pathToFileURL(resolve(member)).href}'\n`).join(''))
    return { file, seconds }
  })
  return [...alone, ...joined]
}
