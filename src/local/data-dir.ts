import { access, constants, mkdir } from 'node:fs/promises'
import { ConfigError } from '../config.ts'

/**
 * Creates the data folder if it is missing.
 *
 * @throws ConfigError that names the variable if the folder cannot be used
 */
export async function openDataDir(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true })
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    const why = whyRefused(String(Reflect.get(Object(cause), 'code')))
    throw why === undefined ? cause : new ConfigError(`DATA_DIR cannot be used: ${dataDir} ${why}`, { cause })
  }
}

function whyRefused(code: string): string | undefined {
  const uid = process.getuid?.()
  const refused = `may not be written by this account${uid === undefined ? '' : ` (uid ${uid})`}`
  const why: Record<string, string> = {
    EACCES: refused,
    EPERM: refused,
    EROFS: 'is on a read-only file system',
    EEXIST: 'is no folder',
    ENOTDIR: 'is no folder',
    ENAMETOOLONG: 'has a path that is too long',
    ENOSPC: 'is on a full disk',
  }
  return why[code]
}
