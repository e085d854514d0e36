import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'

/**
 * Replaces a file, which only its owner can read: at each moment it holds the old text or the new
 * text, whole.
 */
export function writeWhole(file: string, text: string): void {
  withDraft(file, text, (draft) => renameSync(draft, file))
}

/**
 * Makes a file that only its owner can read, unless it is there: of several at once a single
 * process makes it. An empty file counts as absent.
 *
 * @returns what it holds then
 */
export function createWhole(file: string, text: string): string {
  withDraft(file, text, (draft) => {
    if (!isNamed(draft, file) && readFileSync(file, 'utf8') === '') renameSync(draft, file)
  })
  return readFileSync(file, 'utf8')
}

/**
 * As `tryLink`; if the file system has no second names, two at once may both succeed, and the later
 * text stays.
 */
function isNamed(draft: string, file: string): boolean {
  try {
    return tryLink(draft, file)
  } catch (error) {
    if (!['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    if (existsSync(file)) return false
    renameSync(draft, file)
    return true
  }
}

/**
 * Gives a file a second name, unless something has it.
 * @returns whether it did
 */
export function tryLink(file: string, name: string): boolean {
  try {
    linkSync(file, name)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/**
 * What is written to the draft is on the disk before it gets its name: a full disk or a lost
 * machine leaves no half of it.
 */
function withDraft(file: string, text: string, use: (draft: string) => void): void {
  const draft = `${file}.${randomUUID()}`
  try {
    const descriptor = openSync(draft, 'wx', 0o600)
    try {
      writeFileSync(descriptor, text)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    use(draft)
  } finally {
    rmSync(draft, { force: true })
  }
}
