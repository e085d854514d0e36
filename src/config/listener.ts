import { ConfigError } from './environment-reader.ts'

/** Where a process listens, and the variables that set it. */
export interface ListenerAddress {
  host: string
  hostVariable: string
  port: number
  portVariable: string
  /** The variable of another listener of the same start that has this port. */
  takenBy?: string | undefined
}

/**
 * Waits until a server listens.
 *
 * @throws ConfigError that names the variable if the address cannot be used, so that operators see
 *   no stack trace
 */
export async function orNaming<T>(address: ListenerAddress, listening: Promise<T>): Promise<T> {
  try {
    return await listening
  } catch (cause) {
    const words = wordsOf(address, String(Object(cause).code))
    throw words === undefined ? cause : new ConfigError(words, { cause })
  }
}

function wordsOf(address: ListenerAddress, code: string): string | undefined {
  const { host, hostVariable, port, portVariable, takenBy } = address
  switch (code) {
    case 'EADDRINUSE':
      if (takenBy !== undefined)
        return `${portVariable} cannot be used: ${takenBy} needs port ${port} too. Set ${portVariable} to another port`
      return `${portVariable} cannot be used: port ${port} is in use. Set ${portVariable} to another port, or stop the process that uses this port`
    case 'EACCES':
      return `${portVariable} cannot be used: this user may not use port ${port}. Set ${portVariable} to a port above 1023`
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EINVAL':
      return `${hostVariable} cannot be used: ${host} is not an address of this machine`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${hostVariable} cannot be used: the name ${host} has no address`
    default:
      return undefined
  }
}
