import { execFile } from 'node:child_process'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A disk of its own that a scenario can fill without harm to anything else. */
export interface SmallDisk {
  fill: () => Promise<void>
  free: () => Promise<void>
  unmount: () => Promise<void>
}

const CHUNK = Buffer.alloc(1024 * 1024, 1)

/**
 * Mounts a tmpfs of this size.
 *
 * @throws Error if this user may not mount; the scenario then cannot run
 */
export async function mountSmallDisk(folder: string, sizeMb: number): Promise<SmallDisk> {
  await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0777`, 'agw-chaos', folder])
  const filler = join(folder, 'filler')
  return {
    fill: async () => {
      const file = await open(filler, 'w')
      try {
        for (let size = CHUNK.length; size >= 1; size = Math.floor(size / 2)) await writeUntilFull(file, size)
      } finally {
        await file.close()
      }
    },
    free: async () => await rm(filler, { force: true }),
    unmount: async () => void (await run('umount', ['-l', folder])),
  }
}

async function writeUntilFull(file: Awaited<ReturnType<typeof open>>, size: number): Promise<void> {
  for (;;) {
    try {
      await file.write(CHUNK, 0, size)
    } catch (error) {
      if (error instanceof Error && Reflect.get(error, 'code') === 'ENOSPC') return
      throw error
    }
  }
}
