import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { access, constants, mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { createWhole, tryLink } from '../whole-file.ts'
import { freePort } from './free-port.ts'
import { identifyProcess, isSameProcessRunning, type ProcessIdentity } from './process-identity.ts'

/**
 * Creates `<dataDir>/<name>` if it is missing. If root does so, other accounts may pass through the
 * directories that are created above it, because root runs Postgres as another account. Secret
 * files in them have their own permissions.
 */
export async function makePrivateDir(dataDir: string, name: string): Promise<string> {
  const dir = path.resolve(dataDir, name)
  await mkdir(path.dirname(dir), { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
  await mkdir(dir, { recursive: true, mode: 0o700 })
  try {
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new Error(`${dir} belongs to another account; start as that account, or set another DATA_DIR.`, { cause })
  }
  return realpath(dir)
}

/**
 * Makes this process the only process that runs a server in `dir`, and returns a function that ends
 * the claim. Throws if a living process has a claim. If the claiming process is dead, its claim is
 * taken over; the caller must then stop the server that it may have left behind.
 */
export async function claimDir(dir: string, what: string): Promise<() => void> {
  const file = path.join(dir, 'owner.json')
  const me = await identifyProcess(process.pid)
  if (me === undefined) throw new Error('This process cannot be identified.')
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, JSON.stringify(me), { mode: 0o600 })
  try {
    while (!tryLink(draft, file)) {
      const owner = readOwner(file)
      if (owner !== undefined && (await isSameProcessRunning(owner))) {
        throw new Error(
          `${what} in ${dir} is already run by process ${owner.pid}; stop that process first, or set another DATA_DIR.`,
        )
      }
      removeClaim(file, owner)
    }
  } finally {
    rmSync(draft, { force: true })
  }
  return () => removeClaim(file, me)
}

/**
 * Whether the process that ran a server in `<dataDir>/<name>` was killed, and so ended without
 * stopping the server.
 */
export async function wasLeftBehind(dataDir: string, name: string): Promise<boolean> {
  const owner = readOwner(path.join(path.resolve(dataDir, name), 'owner.json'))
  return owner !== undefined && !(await isSameProcessRunning(owner))
}

/**
 * The content of a secret file with mode 0600. If it is missing, it is made with fresh random
 * bytes.
 */
export function loadSecret(file: string): string {
  return (readIfThere(file)?.trim() || createWhole(file, randomBytes(24).toString('base64url'))).trim()
}

/** The port stored in the file, if it is free. Otherwise a new port, which is then stored. */
export async function loadPort(file: string): Promise<number> {
  const port = await freePort(readKeptPort(file))
  writeFileSync(file, `${port}\n`, { mode: 0o600 })
  return port
}

export function readKeptPort(file: string): number | undefined {
  const kept = Number(readIfThere(file))
  return Number.isInteger(kept) && kept > 0 && kept < 65536 ? kept : undefined
}

export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/**
 * The claim is moved aside and checked before it is deleted, because another start may have taken
 * it over since it was read.
 */
function removeClaim(file: string, owner: ProcessIdentity | undefined): void {
  const aside = `${file}.old.${process.pid}`
  try {
    renameSync(file, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return
  }
  const found = readOwner(aside)
  if (found !== undefined && (found.pid !== owner?.pid || found.startedAt !== owner.startedAt)) tryLink(aside, file)
  rmSync(aside, { force: true })
}

function readOwner(file: string): ProcessIdentity | undefined {
  try {
    const { pid, startedAt } = JSON.parse(readIfThere(file) ?? '') as Partial<ProcessIdentity>
    return typeof pid === 'number' && typeof startedAt === 'string' ? { pid, startedAt } : undefined
  } catch {
    return undefined // cut short by a full disk: as good as none
  }
}
