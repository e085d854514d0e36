import { readFileSync } from 'node:fs'
import { ConfigError, type Environment } from './environment-reader.ts'

/** Settings that are secrets or carry a password. */
const SECRET =
  /^(?:DATABASE_URL|REDIS_URL|CACHE_REDIS_URL|SMTP_URL|JWT_SECRET|KEY_PEPPER|ENCRYPTION_KEY|OPERATOR_TOKEN|OIDC_CLIENT_SECRET|TRUSTED_HEADER_SECRET|UPSTREAM_[A-Z0-9_]+_KEY)$/

const ENDING = '_FILE'

/**
 * Reads the secrets whose files `<NAME>_FILE` names, as Docker and Kubernetes mount them. A line
 * break at the end of a file is ignored. The returned environment has the secrets and no `_FILE`
 * variables.
 *
 * @throws ConfigError that names the variable if its file cannot be read or is empty, or if the
 *   secret itself is set too
 */
export function withSecretFiles(environment: Environment): Environment {
  const whole = { ...environment }
  for (const [variable, path] of Object.entries(environment)) {
    const name = variable.slice(0, -ENDING.length)
    if (!path || !variable.endsWith(ENDING) || !SECRET.test(name)) continue
    if (environment[name]) throw new ConfigError(`${name} and ${variable} are both set; leave one of them out`)
    whole[name] = readSecret(variable, path)
    delete whole[variable]
  }
  return whole
}

function readSecret(variable: string, path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigError(`${variable} cannot be read: ${reason}`, { cause })
  }
  const secret = text.replace(/\r?\n$/, '')
  if (secret === '') throw new ConfigError(`${variable} names an empty file: ${path}`)
  return secret
}
