import { access, constants, mkdir } from 'node:fs/promises'
import { ConfigError } from '../config.ts'

const WHY: Record<string, string> = {
  EACCES: 'may not be written by this account',
  EPERM: 'may not be written by this account',
  EROFS: 'is on a read-only file system',
  EEXIST: 'is no folder',
  ENOTDIR: 'is no folder',
  ENAMETOOLONG: 'has a path that is too long',
  ENOSPC: 'is on a full disk',
}

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
    const why = WHY[String(Reflect.get(Object(cause), 'code'))]
    throw why === undefined ? cause : new ConfigError(`DATA_DIR cannot be used: ${dataDir} ${why}`, { cause })
  }
}
