import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SECRET_NAMES, type SecretName } from '../config/secrets.ts'
import { ConfigError } from '../config.ts'
import { createWhole, writeWhole } from './whole-file.ts'

export type Secrets = Record<SecretName, string>

const FILE = 'secrets.json'

/**
 * The secrets of the data folder. Missing secrets are generated. Only the owner can read the file.
 * If several starts run at once on a new folder, they get the same secrets.
 *
 * @param given secrets that replace the secrets of the folder
 * @throws ConfigError if the folder has a database whose secrets are lost
 */
export async function loadSecrets(dataDir: string, given: Partial<Secrets> = {}): Promise<Secrets> {
  return { ...(await keptSecrets(dataDir, given)), ...given }
}

async function keptSecrets(dataDir: string, given: Partial<Secrets>): Promise<Secrets> {
  const kept = await readPrivateJson<Partial<Secrets>>(dataDir, FILE)
  // With new secrets, every API key of the database would be unknown, and nobody would say why.
  if (kept === undefined && SECRET_NAMES.some((name) => given[name] === undefined)) requireNoDatabase(dataDir)
  const secrets = Object.fromEntries(
    SECRET_NAMES.map((name) => [name, kept?.[name] ?? randomBytes(32).toString('base64url')]),
  ) as Secrets
  if (kept === undefined) {
    await mkdir(dataDir, { recursive: true })
    return JSON.parse(createWhole(join(dataDir, FILE), asText(secrets)))
  }
  if (SECRET_NAMES.some((name) => kept[name] === undefined)) await writePrivateJson(dataDir, FILE, secrets)
  return secrets
}

function requireNoDatabase(dataDir: string): void {
  if (!existsSync(join(dataDir, 'postgres', 'data'))) return
  const file = join(dataDir, FILE)
  throw new ConfigError(
    `${file} is missing, and the database of this folder needs the secrets in it: without them no API key and no session is valid, and no stored key can be opened. Restore the file from a backup. If there is no backup, write {} into the file: the next start makes new secrets, and everybody needs new API keys`,
  )
}

/** Reads a JSON file of the data folder; undefined if it does not exist. */
export async function readPrivateJson<T>(dataDir: string, name: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, name), 'utf8'))
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, 'code') === 'ENOENT') return undefined
    throw new Error(`${join(dataDir, name)} cannot be read`, { cause: error })
  }
}

/** Writes a JSON file of the data folder that only its owner can read. */
export async function writePrivateJson(dataDir: string, name: string, value: object): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  writeWhole(join(dataDir, name), asText(value))
}

function asText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
