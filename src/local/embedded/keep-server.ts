import { setTimeout as sleep } from 'node:timers/promises'
import type { EmbeddedServer } from './embedded-server.ts'

/**
 * If the server dies so often within this time, it is not started again, because something else is
 * wrong. Milliseconds.
 */
const DEATHS_MAX = 3
const DEATHS_WITHIN_MS = 60_000

/** Pause between two failed starts, milliseconds. */
const PAUSE_MS = 300

/** An embedded server that is started again when it dies. */
export interface KeptServer {
  url: string
  /** Stops the server for good. */
  stop: () => Promise<void>
  /** Resolves with the reason when the server is given up. */
  givenUp: Promise<Error>
}

export interface KeepServerOptions {
  /** The name for messages, `Redis`. */
  name: string
  /** Starts the server on the same files and, if it is free, on the same port. */
  start: () => Promise<EmbeddedServer>
  print: (text: string) => void
}

/**
 * Starts a server and watches it. If it dies, it is started again on the same port and data, and
 * the processes of the service reconnect by themselves. After the third death within a minute it is
 * given up.
 *
 * @throws the error of the first start
 */
export async function keepServer(options: KeepServerOptions): Promise<KeptServer> {
  const { promise: givenUp, resolve: giveUp } = Promise.withResolvers<Error>()
  const state = { server: await options.start(), isStopped: false }
  const { url } = state.server
  const watching = watch(state, options).then((reason) => {
    if (reason !== undefined) giveUp(reason)
  })
  const stop = async () => {
    state.isStopped = true
    await state.server.stop()
    await watching
    // This start was running when the stop was requested.
    await state.server.stop()
  }
  return { url, stop, givenUp }
}

/** @returns why the server was given up; undefined if it was stopped */
async function watch(
  state: { server: EmbeddedServer; isStopped: boolean },
  { name, start, print }: KeepServerOptions,
): Promise<Error | undefined> {
  const deaths: number[] = []
  const { url } = state.server
  for (;;) {
    await state.server.ended
    if (state.isStopped) return undefined
    const diedAt = performance.now()
    let lastLog = state.server.lastLog()
    deaths.push(diedAt)
    for (;;) {
      if (isTooOften(deaths)) {
        return new Error(
          `The embedded ${name} died ${DEATHS_MAX} times within a minute. Its last log lines:\n${lastLog}`,
        )
      }
      try {
        // Releases the claim on the folder, which the next start needs.
        await state.server.stop()
        const server = await start()
        state.server = server
        if (state.isStopped) return undefined
        if (server.url !== url) return new Error(`The port of the embedded ${name} is in use by another program.`)
        break
      } catch (error) {
        if (state.isStopped) return undefined
        lastLog = error instanceof Error ? error.message : String(error)
        deaths.push(performance.now())
        await sleep(PAUSE_MS)
      }
    }
    const seconds = ((performance.now() - diedAt) / 1_000).toFixed(1)
    print(`The embedded ${name} died and was started again within ${seconds} s.`)
  }
}

function isTooOften(deaths: number[]): boolean {
  const first = deaths.at(-DEATHS_MAX)
  return first !== undefined && performance.now() - first < DEATHS_WITHIN_MS
}
