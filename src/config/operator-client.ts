import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { ConfigError, type Environment, EnvironmentReader, parseJson } from './environment-reader.ts'
import { readHttp } from './http.ts'
import { readDataDir } from './start.ts'

/** The address of the operator API, and the token that the command line sends. */
export interface OperatorClient {
  url: string
  token: string
  /** Where the token comes from, for the message about a wrong token. */
  tokenFrom: string
  /** The name that the audit log records. */
  name: string
  /** Reads a variable to which a settings file refers. */
  variable: (name: string) => string | undefined
}

/** @throws ConfigError if there is no token, in the environment or in the data folder */
export async function readOperatorClient(url: string | undefined, environment: Environment): Promise<OperatorClient> {
  const read = new EnvironmentReader(environment)
  const { opsHost, opsPort } = readHttp(read)
  const given = read.text('OPERATOR_TOKEN', '')
  const token = given || (await keptOperatorToken(readDataDir(read)))
  if (!token)
    throw new ConfigError(
      `OPERATOR_TOKEN is required: the token that opens the operator API. npm start keeps it in ${join(readDataDir(read), SECRETS_FILE)}, which has no token: if npm start ran with another DATA_DIR, set the same DATA_DIR here`,
    )
  const name = read
    .text('USER', '')
    .replace(/[^\w.@-]/g, '')
    .slice(0, 64)
  // If a variable names an address, use it. Otherwise use the console that `npm start` runs on this
  // data folder.
  const isNamed = ['OPS_PORT', 'OPS_HOST', 'PORT'].some((variable) => read.text(variable, '') !== '')
  const kept = isNamed ? undefined : await keptConsoleUrl(readDataDir(read))
  const address = url ?? kept ?? consoleUrl(opsHost, opsPort)
  const tokenFrom = given ? 'OPERATOR_TOKEN in the environment' : join(readDataDir(read), SECRETS_FILE)
  return {
    url: address.replace(/\/+$/, ''),
    token,
    tokenFrom,
    name: name || 'operator',
    variable: (wanted) => environment[wanted],
  }
}

/**
 * The address at which this machine reaches the console. If the console listens on every address,
 * the loopback address.
 */
export function consoleUrl(opsHost: string, port: number): string {
  const host = opsHost === '0.0.0.0' || opsHost === '::' ? '127.0.0.1' : opsHost
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`
}

const SECRETS_FILE = 'secrets.json'

async function keptOperatorToken(dataDir: string): Promise<string | undefined> {
  // `npm start` writes this file. If `npm start` has never run, the file does not exist.
  const text = await readFile(join(dataDir, SECRETS_FILE), 'utf8').catch(() => '{}')
  const { OPERATOR_TOKEN: token } = Object(parseJson(text, SECRETS_FILE)) as { OPERATOR_TOKEN?: unknown }
  return typeof token === 'string' ? token : undefined
}

/** Name of the file in the data folder that says where the console listens. */
export const CONSOLE_FILE = 'console.json'

async function keptConsoleUrl(dataDir: string): Promise<string | undefined> {
  const text = await readFile(join(dataDir, CONSOLE_FILE), 'utf8').catch(() => '{}')
  const { url } = Object(parseJson(text, CONSOLE_FILE)) as { url?: unknown }
  return typeof url === 'string' && URL.canParse(url) ? url : undefined
}
