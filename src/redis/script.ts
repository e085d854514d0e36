import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { RedisConnection } from './connection.ts'
import { RedisError } from './redis-error.ts'

type Value = string | number | Buffer

/**
 * Constants that TypeScript and Lua share. They are defined in TypeScript and become locals of the
 * script.
 */
export type ScriptConstants = Record<string, string | number | readonly (string | number)[]>

interface Line {
  text: string
  /** Place of a line for error messages: `file.lua:12`. */
  origin: string
}

/**
 * A Lua script. It is sent by its hash, and in full only if Redis does not know the hash. Its keys
 * share one hash slot.
 */
export class Script {
  /** The full text of the script: constants, includes and the file itself. */
  readonly lua: string
  readonly #sha: string
  readonly #origins: string[]

  constructor(lines: Line[]) {
    this.lua = lines.map(({ text }) => text).join('\n')
    this.#origins = lines.map(({ origin }) => origin)
    this.#sha = createHash('sha1').update(this.lua).digest('hex')
  }

  /**
   * Runs the script.
   *
   * @returns Redis' reply as ioredis shapes it
   * @throws RedisError; an error of the script names the file and line of the `.lua` file
   */
  async run(redis: RedisConnection, keys: string[], values: Value[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...values)
    } catch (error) {
      if (!(error instanceof RedisError)) throw error
      if (error.replyCode === 'NOSCRIPT') return await redis.eval(this.lua, keys.length, ...keys, ...values)
      error.message = error.message.replace(/user_script:(\d+)/g, (place, line) => this.#origins[line - 1] ?? place)
      throw error
    }
  }
}

/** Every script of this process by the path of its file, with the files that it includes. */
export const loadedScripts = new Map<string, { script: Script; files: string[] }>()

/**
 * Loads a script from the `.lua` file beside the calling module. The text of the named file
 * replaces a line `--- @include "./other.lua"`, and each file is included only once. `constants`
 * become locals at the beginning.
 *
 * A first line `#!lua flags=…` tells Redis what the script may do (Redis documentation, "Eval
 * scripts flags").
 *
 * If a script includes `clock.lua`, its ARGV[1] is the time; an empty value means Redis' clock.
 *
 * @throws Error if a file is missing, or if the script does not use a constant
 */
export function loadScript(url: URL, constants: ScriptConstants = {}): Script {
  const included = new Set<string>()
  const body = readLines(url, included)
  const text = body.map((line) => line.text).join('\n')
  const declared = Object.entries(constants).map(([name, value]): Line => {
    if (!new RegExp(`\\b${name}\\b`).test(text)) throw new Error(`${basename(url.pathname)} does not use ${name}`)
    return { text: `local ${name} = ${luaLiteral(value)}`, origin: `constant ${name}` }
  })
  const flags = body[0]?.text.startsWith('#!') ? body.splice(0, 1) : []
  const script = new Script([...flags, ...declared, ...body])
  loadedScripts.set(url.pathname, { script, files: [...included] })
  return script
}

const INCLUDE = /^--- @include "(.+)"$/

function readLines(url: URL, included: Set<string>): Line[] {
  if (included.has(url.pathname)) return []
  included.add(url.pathname)
  const file = basename(url.pathname)
  return readFileSync(url, 'utf8')
    .trimEnd()
    .split('\n')
    .flatMap((text, index) => {
      const [, path] = INCLUDE.exec(text) ?? []
      return path === undefined ? { text, origin: `${file}:${index + 1}` } : readLines(new URL(path, url), included)
    })
}

function luaLiteral(value: ScriptConstants[string]): string {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return JSON.stringify(value)
  return `{${value.map(luaLiteral).join(', ')}}`
}
