import type { InstallPolicy } from '../../config.ts'

/** The folder of an embedded server's files, and how it tells what takes time. */
export type EmbeddedOptions = {
  /** Directory of all embedded data; made when absent. */
  dataDir: string
  /** Prints a line of progress. Not called if nothing takes long. */
  print: (text: string) => void
  /** Whether a missing Redis may be installed: `ask` by default. */
  install?: InstallPolicy
}

export type EmbeddedServer = {
  /** Address with credentials, on 127.0.0.1. */
  url: string
  /** Stops the server and keeps its data. Safe to call twice. */
  stop: () => Promise<void>
  /** Resolves when the server has ended, stopped or not. */
  ended: Promise<void>
  /** Sends a signal to the server itself, wherever it runs. */
  signal: (signal: NodeJS.Signals) => Promise<void>
  /** The last lines that the server wrote. */
  lastLog: () => string
}

/** The same promise for every call of `action`. */
export function once(action: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined
  return () => {
    result ??= action()
    return result
  }
}
