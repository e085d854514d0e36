import type { InstallPolicy } from '../../config.ts'

/** Where an embedded server keeps its files, and how it reports progress. */
export type EmbeddedOptions = {
  /** Directory of all embedded data; created if missing. */
  dataDir: string
  /** Prints a line of progress. Not called if everything is quick. */
  print: (text: string) => void
  /** Whether to install a missing Redis. Default: `ask`. */
  install?: InstallPolicy
}

export type EmbeddedServer = {
  /** Address with credentials, on 127.0.0.1. */
  url: string
  /** Stops the server and keeps its data. May be called twice. */
  stop: () => Promise<void>
  /** Resolves when the server has ended for any reason. */
  ended: Promise<void>
  /** Sends a signal to the server itself, even if it runs in a container. */
  signal: (signal: NodeJS.Signals) => Promise<void>
  /** The last lines that the server wrote. */
  lastLog: () => string
}

/** Runs `action` only once. Every call returns the same promise. */
export function once(action: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined
  return () => {
    result ??= action()
    return result
  }
}
