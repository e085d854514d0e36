import { readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FILE_MS_MAX, onFileStart, onFilesEnd } from './file-deadline.ts'

const PROJECT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Runs test files of a list after each other, each as a test with the name of the file, until
 * other processes and this process have taken all of them.
 *
 * @param list path of the list: URLs of test files, the slowest first. A mark beside it says that a
 *   process has taken a file
 */
export async function takeFiles(list: string): Promise<void> {
  const files: string[] = JSON.parse(readFileSync(list, 'utf8'))
  for (const [index, file] of files.entries()) {
    if (!take(`${list}.${index}`)) continue
    onFileStart()
    await test(relative(PROJECT, fileURLToPath(file)), { timeout: FILE_MS_MAX }, () => {
      // A suite waits until the file is imported. The file's hooks belong to this suite, so what
      // the file has started ends with its tests.
      describe('its tests', async () => {
        await import(file)
      })
    })
  }
  onFilesEnd()
}

/** Whether no other process had taken the file that this mark stands for. */
function take(mark: string): boolean {
  try {
    writeFileSync(mark, '', { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
