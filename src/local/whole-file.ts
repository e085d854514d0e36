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
 * Replaces a file that only its owner can read. At every moment the file holds either the whole old
 * text or the whole new text.
 */
export function writeWhole(file: string, text: string): void {
  withDraft(file, text, (draft) => renameSync(draft, file))
}

/**
 * Creates a file that only its owner can read, unless it exists. If several processes do it at
 * once, only one succeeds. An empty file counts as missing.
 *
 * @returns the content of the file
 */
export function createWhole(file: string, text: string): string {
  withDraft(file, text, (draft) => {
    if (!isNamed(draft, file) && readFileSync(file, 'utf8') === '') renameSync(draft, file)
  })
  return readFileSync(file, 'utf8')
}

/**
 * As `tryLink`. If the file system has no hard links, two processes may both succeed, and the later
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
 * Makes a hard link to a file, unless the name exists.
 * @returns whether it made the link
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
 * The draft is on the disk before it gets its name, so that a full disk or a crash never leaves
 * half a file.
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
