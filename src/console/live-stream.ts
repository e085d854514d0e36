import type { ServerResponse } from 'node:http'
import type { Log } from '../log.ts'

const SNAPSHOT_EVERY_MS = 1_000

/**
 * How often the session of a stream is checked, milliseconds. When the session has ended, the
 * stream ends.
 */
const SESSION_CHECK_MS = 5_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

export interface LiveSource {
  log: Pick<Log, 'warn' | 'debug'>
  /** The data to send, called each second. */
  snapshot: () => Promise<unknown>
  /** Whether the session of the reader is still valid. */
  isAllowed: () => Promise<boolean>
}

/**
 * Sends server-sent events over a response until its connection closes, the stream is ended, or the
 * reader's session ends. Nobody else may write to the response.
 */
export function streamLive(response: ServerResponse, { log, snapshot, isAllowed }: LiveSource): void {
  response.writeHead(200, HEADERS)
  const send = (): void => {
    snapshot().then(
      (value) => {
        // A slow reader gets fewer snapshots instead of a backlog of old snapshots.
        if (isOpen(response) && !response.writableNeedDrain) response.write(`data: ${JSON.stringify(value)}\n\n`)
      },
      (error) => log.warn({ err: error }, 'failed to read the fleet'),
    )
  }
  const check = (): void => {
    isAllowed().then(
      (is) => is || end(),
      (error) => log.warn({ err: error }, 'failed to check the session of a live stream'),
    )
  }
  const timers = [setInterval(send, SNAPSHOT_EVERY_MS), setInterval(check, SESSION_CHECK_MS)]
  const stop = (): void => {
    for (const timer of timers) clearInterval(timer)
  }
  // If the reader does not read, the stream ends when it reads again or leaves. Until then nothing
  // more may be written.
  const end = (): void => {
    stop()
    if (isOpen(response)) response.end()
  }
  // An error without a listener would end the process.
  response.on('error', (error) => log.debug({ err: error }, 'failed to write to a live stream'))
  response.once('close', stop)
  send()
}

const isOpen = (response: ServerResponse): boolean => !response.destroyed && !response.writableEnded
