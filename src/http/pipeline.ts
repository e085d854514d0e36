import type { Server, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { RecentBytes } from './recent-bytes.ts'

/** Requests of one connection that may be unanswered at once; the connection is not read while there are as many. */
const UNANSWERED_MAX = 8

/** Each unanswered request may listen for the end of its connection; Node warns of more than ten listeners as of a leak. */
const LISTENERS_MAX = 10 + 2 * UNANSWERED_MAX

/** Bytes of the shortest request there is. */
const REQUEST_BYTES_MIN = 18

const HEADER_END = Buffer.from('\r\n\r\n')

const gates = new WeakMap<Socket, PipelineGate>()

/**
 * Bounds HTTP/1.1 pipelining. Node hands over every request of what it has read at once, 1 700 in 64 KB, and each
 * answer is made before the first one is read. With this, a connection's requests are parsed only as fast as their
 * answers are taken.
 */
export function boundPipelining(server: Server | HttpsServer): void {
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection'
  server.on(event, (socket: Socket) => gates.set(socket, new PipelineGate(socket)))
  server.on('request', ({ socket }, response) => gates.get(socket)?.count(response))
}

/** The bytes of a connection since its last complete request head; undefined for a server without the bound. */
export function recentBytes(socket: Socket): RecentBytes | undefined {
  return gates.get(socket)?.recent
}

/** Stands between a socket and the HTTP parser. */
class PipelineGate {
  readonly #socket: Socket
  readonly #parse: (chunk: Buffer) => void
  readonly recent = new RecentBytes()
  #unparsed: Buffer | undefined
  #unanswered = 0
  /** Requests whose head has arrived. */
  #heads = 0
  /** Paused here, and not by the parser for want of room in a body or on the socket. */
  #isPaused = false
  /** One listener for all answers of the connection spares a closure each. */
  readonly #onAnswered = (): void => {
    this.#unanswered -= 1
    if (!this.#isPaused || this.#unanswered >= UNANSWERED_MAX) return
    this.#isPaused = false
    if (!isPausedByNode(this.#socket)) this.#socket.resume()
  }

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setMaxListeners(LISTENERS_MAX)
    const [parse] = socket.listeners('data') as ((chunk: Buffer) => void)[]
    if (!parse) throw new Error('the HTTP parser does not listen to this socket')
    this.#parse = parse
    socket.removeListener('data', parse)
    socket.on('data', (chunk: Buffer) => {
      this.#unparsed = this.#unparsed ? Buffer.concat([this.#unparsed, chunk]) : chunk
      this.#feed()
    })
    socket.on('resume', () => this.#feed())
  }

  /** Counts a request until its answer is written or its connection is gone. */
  count(response: ServerResponse): void {
    this.#unanswered += 1
    this.#heads += 1
    response.on('close', this.#onAnswered)
  }

  #feed(): void {
    while (this.#unparsed && !this.#socket.destroyed) {
      // Node may have paused the socket between the call of `resume` and its event.
      if (isPausedByNode(this.#socket)) return
      if (this.#unanswered >= UNANSWERED_MAX) {
        this.#isPaused = true
        this.#socket.pause()
        return
      }
      const bytes = this.#unparsed
      const end = endOfRequests(bytes, UNANSWERED_MAX - this.#unanswered)
      const chunk = end < bytes.length ? bytes.subarray(0, end) : bytes
      this.#unparsed = end < bytes.length ? bytes.subarray(end) : undefined
      const heads = this.#heads
      this.recent.add(chunk)
      this.#parse.call(this.#socket, chunk)
      if (this.#heads !== heads) this.recent.endHead()
      // Node paused it: a body or the answers have no room. It resumes the socket itself.
      if (this.#unparsed && this.#socket.isPaused()) return
    }
  }
}

/**
 * Whether Node itself has stopped reading a connection because its answers are not taken. It starts again by itself;
 * requests that its parser is given before then fail an assertion that nothing catches, which ends the process. Node has
 * no public name for this state.
 */
const isPausedByNode = (socket: Socket): boolean => (socket as { _paused?: boolean })._paused === true

/** How many of these bytes hold no more than so many requests, whatever else is in them. */
function endOfRequests(bytes: Buffer, count: number): number {
  let end = 0
  for (let found = 0; found < count; found += 1) {
    const index = bytes.indexOf(HEADER_END, end)
    if (index < 0) return bytes.length
    end = index + HEADER_END.length
  }
  // A body may be full of what looks like ends of headers; it is not cut smaller than requests could be.
  return Math.max(end, Math.min(bytes.length, count * REQUEST_BYTES_MIN))
}
