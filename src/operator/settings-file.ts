import { readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { stdin } from 'node:process'
import { buffer } from 'node:stream/consumers'
import Type from 'typebox'
import { Compile } from 'typebox/schema'
import { stringify } from 'yaml'
import { isObject } from '../catalog/json.ts'
import { reportMisfits } from '../catalog/openapi/misfits.ts'
import { readText } from '../catalog/openapi/read-text.ts'
import { Findings, findingLine, Unreadable } from '../catalog/openapi/report.ts'
import { SettingsChange, type StoredSettings } from './apply-settings.ts'
import { UsageError } from './command-line.ts'

/**
 * A key is given by a variable or a separate file, so that the settings file may be readable by
 * everybody.
 */
const KeyReference = Type.Union([
  Type.Object({ env: Type.String({ pattern: '^[A-Z][A-Z0-9_]*$' }) }, { additionalProperties: false }),
  Type.Object({ file: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
  Type.Null(),
])
const settingsCheck = Compile(SettingsChange)
const referenceCheck = Compile(KeyReference)

/**
 * Reads a file of settings, and the keys to which it refers.
 *
 * @param file `-` means standard input
 * @param variable reads an environment variable
 * @throws UsageError with a line for each error
 */
export async function readSettingsFile(
  file: string,
  variable: (name: string) => string | undefined,
): Promise<SettingsChange> {
  const isStdin = file === '-'
  const name = isStdin ? 'standard input' : basename(file)
  const findings = new Findings(name)
  const bytes = await (isStdin ? buffer(stdin) : readFile(file)).catch((cause) => {
    throw new UsageError(`${resolve(file)} cannot be read.`, { cause })
  })
  try {
    const root = readText(name, bytes, findings)
    findings.readFrom(root)
    const settings = await withKeys(root, variable, findings)
    if (!settingsCheck.Check(settings)) {
      const [, misfits] = settingsCheck.Errors(settings)
      reportMisfits(misfits, { schema: SettingsChange, path: [], name: 'The file' }, findings)
    }
    if (findings.errors.length === 0) return settings as SettingsChange
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
  }
  throw new UsageError(['Nothing was changed.', ...findings.errors.map(findingLine)].join('\n'))
}

/** The stored settings as a file without keys. */
export function settingsFileText({ upstreams, keys }: StoredSettings): string {
  const note =
    keys.length === 0
      ? ''
      : `# Keys are not exported: ${keys.join(', ')}. Another gateway needs key: { env: NAME } or key: { file: PATH }.\n`
  return note + stringify({ upstreams }).trimEnd()
}

/** Replaces references by the keys. No message repeats a key. */
async function withKeys(
  root: unknown,
  variable: (name: string) => string | undefined,
  findings: Findings,
): Promise<unknown> {
  if (!isObject(root) || !isObject(root.upstreams)) return root
  const upstreams: Record<string, unknown> = {}
  for (const [slug, settings] of Object.entries(root.upstreams)) {
    const path = ['upstreams', slug, 'key']
    upstreams[slug] = settings
    if (!isObject(settings) || settings.key === undefined || settings.key === null) continue
    const { key: reference } = settings
    const { key: _key, ...others } = settings
    upstreams[slug] = others
    if (!referenceCheck.Check(reference)) {
      findings.error(
        path,
        'The file must not contain a key itself. Write where the key is: key: { env: NAME } or key: { file: PATH }.',
      )
      continue
    }
    const { env, file } = Object(reference) as { env?: string; file?: string }
    const place = env ?? resolve(file ?? '')
    const key = env === undefined ? await readKeyFile(place) : (variable(env) ?? '')
    if (key === undefined) findings.error(path, `The file ${place} cannot be read.`)
    else if (key === '') findings.error(path, `There is no key in ${place}.`)
    else upstreams[slug] = { ...others, key }
  }
  return { ...root, upstreams }
}

/** Undefined if the file cannot be read. */
async function readKeyFile(file: string): Promise<string | undefined> {
  return await readFile(file, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  )
}
