import { type AsyncHook, createHook } from 'node:async_hooks'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { relative } from 'node:path'
import { before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { hasSharingEnded } from '../tools/shared-processes.ts'
import { FILE_MS_MAX, onFileEnd, onFileStart, onFilesEnd } from './file-deadline.ts'

const PROJECT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Runs test files of a list after each other, each as a test with the name of the file, until other
 * processes and this process have taken all of them.
 *
 * @param list path of the list: URLs of test files, the slowest first. A file beside it, the mark,
 *   says that a process has taken a test file
 * @param isSpare whether this process waits before each file until a processor is idle
 */
export async function takeFiles(list: string, { isSpare }: { isSpare: boolean }): Promise<void> {
  const following = hookOfRunner()
  const files: string[] = JSON.parse(readFileSync(list, 'utf8'))
  for (const [index, file] of files.entries()) {
    const mark = `${list}.${index}`
    if (isSpare) await untilIdle(mark)
    if (hasSharingEnded(list)) break
    if (!take(mark)) continue
    onFileStart()
    following.enable()
    await test(relative(PROJECT, fileURLToPath(file)), { timeout: FILE_MS_MAX }, () => {
      // A suite waits until the file is imported. The file's hooks belong to this suite, so what
      // the file has started ends with its tests.
      describe('its tests', async () => {
        before(() => following.disable())
        await import(file)
      })
    })
    onFileEnd()
  }
  onFilesEnd()
}

/** A spare process begins a file after this time, milliseconds, in which a processor was idle. */
const IDLE_MS = 2_000

/** How much of a processor must have been idle in this time. */
const IDLE_SHARE_MIN = 0.4

/** Waits until a processor is idle, or until another process takes the test file of this mark. */
async function untilIdle(mark: string): Promise<void> {
  const idleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0)
  for (let idle = 0; idle < IDLE_SHARE_MIN * IDLE_MS && !existsSync(mark); ) {
    const before = idleMs()
    await delay(IDLE_MS)
    idle = idleMs() - before
  }
}

/** Takes the test file of a mark. False if another process has taken it already. */
function take(mark: string): boolean {
  try {
    writeFileSync(mark, '', { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/**
 * The hook by which node:test follows each promise and each handle to the test that made it. That
 * takes a sixth of the processor time of tests of calls, and a quarter of the memory. The files
 * need it only while they declare their tests. Without it, an error that nobody catches fails the
 * process that runs the file, and not the test.
 */
function hookOfRunner(): { enable: () => void; disable: () => void } {
  let hook: AsyncHook | undefined
  const prototype: AsyncHook = Object.getPrototypeOf(createHook({}))
  const { enable } = prototype
  // The runner enables its hook at the first test of the process.
  prototype.enable = function (this: AsyncHook) {
    prototype.enable = enable
    hook = this
    return enable.call(this)
  }
  return { enable: () => void hook?.enable(), disable: () => void hook?.disable() }
}
