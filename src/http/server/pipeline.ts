import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { subscriberOf } from '../../throttles/client-network.ts'
import { BodyParts, TOO_MANY_PARTS } from './body-parts.ts'
import { FairTurns } from './fair-turns.ts'
import type { HeldBytes } from './held-bytes.ts'
import { type HeldConnection, type Holding, noteHolding } from './holding.ts'
import { RecentBytes } from './recent-bytes.ts'
import type { IsProxy } from './trusted-proxies.ts'

/**
 * Most unanswered requests of one connection. At this number, the connection is not read any
 * further.
 */
const UNANSWERED_MAX = 8

/**
 * Each unanswered request may listen for the end of its connection. Node warns of a leak above ten
 * listeners.
 */
const LISTENERS_MAX = 10 + 2 * UNANSWERED_MAX

/** Length of the shortest possible request. */
const REQUEST_BYTES_MIN = 18

/**
 * Memory of a connection, and of an unanswered request, besides the bytes that were received and
 * sent.
 */
const CONNECTION_BYTES = 8 * 1_024
const REQUEST_BYTES = 8 * 1_024

/** Bytes that are parsed at once. The cost of a body is checked in between. */
const PARSED_BYTES_MAX = 8 * 1_024

/**
 * A client that reads fewer bytes than this between two sweeps (one second) counts as reading
 * nothing.
 */
const TAKEN_BYTES_MIN = 1_024

const HEADER_END = Buffer.from('\r\n\r\n')

const gates = new WeakMap<Socket, PipelineGate>()

/**
 * Limits HTTP/1.1 pipelining. Without it, Node parses all requests that it has read at once, 1 700
 * in 64 KB, and all their answers are made before the first is read. Here a connection's requests
 * are parsed only as fast as their answers are read, and the bytes of each request are counted. The
 * connections of a proxy serve many clients, so the bytes of their requests are assigned when the
 * client is known.
 */
export function boundPipelining(server: Server | HttpsServer, held: HeldBytes, isProxy: IsProxy): void {
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection'
  const turns = new FairTurns()
  const refuse = (socket: Socket, code: string): void => {
    if (!server.emit('clientError', Object.assign(new Error(code), { code }), socket)) socket.destroy()
  }
  server.on(event, (socket: Socket) => gates.set(socket, new PipelineGate(socket, { held, turns, isProxy, refuse })))
  // This listener runs before the handler, which needs the holding.
  server.prependListener('request', (request, response) => gates.get(request.socket)?.count(request, response))
  // Without a listener, Node closes the connection without an answer.
  server.on('connect', ({ socket }) => gates.get(socket)?.refuse('CONNECT'))
}

/**
 * The bytes of a connection since its last complete request head; undefined for a server without
 * this limit.
 */
export function recentBytes(socket: Socket): RecentBytes | undefined {
  return gates.get(socket)?.recent
}

interface GateDeps {
  held: HeldBytes
  turns: FairTurns
  isProxy: IsProxy
  /** Answers a refused request, and closes the connection. */
  refuse: (socket: Socket, code: string) => void
}

/** Stands between a socket and the HTTP parser. */
class PipelineGate implements HeldConnection {
  readonly #socket: Socket
  readonly #parse: (chunk: Buffer) => void
  readonly recent = new RecentBytes()
  readonly #held: HeldBytes
  readonly #turns: FairTurns
  readonly #own: Holding
  /** The holdings of the unanswered requests. Requests and answers have the same order. */
  readonly #holdings: Holding[] = []
  #newest: IncomingMessage | undefined
  /** Bytes that have arrived of an incomplete request head. */
  #headBytes = 0
  readonly #body = new BodyParts()
  #isRefused = false
  #takenBytes = 0
  #unparsed: Buffer | undefined
  /** Number of requests whose head has arrived. */
  #heads = 0
  /**
   * Whether this gate paused the socket. The parser may also pause it, when a body or the socket is
   * full.
   */
  #isPaused = false
  /** Whether the gate waits for its client's next turn. */
  #isWaiting = false
  /** One listener for all answers of the connection, which saves a closure for each answer. */
  readonly #onAnswered = (): void => {
    this.#holdings.shift()?.release()
    if (!this.#isWaiting && this.#holdings.length < UNANSWERED_MAX) this.#resume()
  }
  readonly #onTurn = (): void => {
    this.#isWaiting = false
    this.#resume()
  }

  readonly #refuse: GateDeps['refuse']

  constructor(socket: Socket, { held, turns, isProxy, refuse }: GateDeps) {
    this.#socket = socket
    this.#refuse = refuse
    this.#held = held
    this.#turns = turns
    const { remoteAddress: address } = socket
    const client = address === undefined || isProxy(address) ? undefined : held.ownerOf('client', subscriberOf(address))
    held.open(this)
    this.#own = held.hold(this, CONNECTION_BYTES, client)
    socket.once('close', () => this.#release())
    socket.setMaxListeners(LISTENERS_MAX)
    const [parse] = socket.listeners('data') as ((chunk: Buffer) => void)[]
    if (!parse) throw new Error('the HTTP parser does not listen to this socket')
    this.#parse = parse
    socket.removeListener('data', parse)
    socket.on('data', (chunk: Buffer) => {
      if (this.#isRefused) return
      this.#unparsed = this.#unparsed ? Buffer.concat([this.#unparsed, chunk]) : chunk
      this.#feed()
      this.#countOwn()
    })
    socket.on('resume', () => {
      this.#feed()
      this.#countOwn()
    })
  }

  get copies(): boolean {
    return 'encrypted' in this.#socket
  }

  /** Counts a request until its answer is written or its connection is closed. */
  count(request: IncomingMessage, response: ServerResponse): void {
    const holding = this.#held.hold(this, REQUEST_BYTES, this.#own.client)
    this.#holdings.push(holding)
    this.#newest = request
    noteHolding(request, holding)
    this.#body.begin(request, holding)
    this.#heads += 1
    response.on('close', this.#onAnswered)
  }

  /**
   * Refuses everything that the connection sends from now on. After a CONNECT, the parser is no
   * longer attached to this socket, and Node does not listen to it. The gate reads and discards the
   * data, because unread data would cause a reset, and the client would lose the answer.
   */
  refuse(code: string): void {
    this.#isRefused = true
    this.#unparsed = undefined
    this.#refuse(this.#socket, code)
    this.#socket.on('error', () => undefined).resume()
  }

  isIdle(): boolean {
    this.#countOwn(this.#socket.readableLength)
    const taken = this.#socket.bytesRead + takenBytes(this.#socket)
    const isIdle = taken < this.#takenBytes + TAKEN_BYTES_MIN
    if (!isIdle) this.#takenBytes = taken
    return isIdle && (this.#socket.writableLength > 0 || this.#newest?.complete === false)
  }

  end(): void {
    this.#release()
    this.#socket.destroy()
  }

  #release(): void {
    for (const holding of this.#holdings) holding.release()
    this.#own.release()
    this.#held.close(this)
  }

  /** @param unread bytes that Node has read from the connection and not yet handed over */
  #countOwn(unread = 0): void {
    this.#own.set(CONNECTION_BYTES + this.#headBytes + (this.#unparsed?.length ?? 0) + unread)
  }

  /**
   * Hands bytes to the parser. If they belong to the body of a request that was answered already,
   * they are discarded.
   */
  #parseChunk(chunk: Buffer): void {
    const heads = this.#heads
    const isBody = this.#newest?.complete === false
    this.recent.add(chunk)
    this.#parse.call(this.#socket, chunk)
    if (this.#heads !== heads) {
      this.recent.endHead()
      this.#headBytes = 0
      if (this.#own.client) this.#turns.begin(this.#own.client, this.#heads - heads)
    }
    if (this.#heads !== heads || isBody) this.#holdings.at(-1)?.add(chunk.length)
    else this.#headBytes += chunk.length
    if (this.#newest && isBody && this.#heads === heads) this.#checkBody(this.#newest, chunk.length)
  }

  /** Fails closed: if a body costs too much, the rest of it is refused. */
  #checkBody(request: IncomingMessage, bytes: number): void {
    this.recent.endBody(request.complete)
    if (this.#holdings.length === 0) this.#body.discard(request, bytes)
    if (this.#body.isTooMany) this.refuse(TOO_MANY_PARTS)
  }

  #pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!isPausedByNode(this.#socket)) this.#socket.resume()
  }

  /**
   * Whether the client may begin a request now. For a connection of a proxy the client is not known
   * before its request.
   */
  #hasTurn(): boolean {
    const { client } = this.#own
    this.#isWaiting = client !== undefined && !this.#turns.mayBegin(client, this.#onTurn)
    return !this.#isWaiting
  }

  #feed(): void {
    while (this.#unparsed && !this.#socket.destroyed && !this.#isWaiting) {
      // Node may have paused the socket between the call of `resume` and its event.
      if (isPausedByNode(this.#socket)) return
      if (this.#holdings.length >= UNANSWERED_MAX || !this.#hasTurn()) {
        this.#pause()
        return
      }
      const bytes = this.#unparsed
      const end = endOfRequests(bytes.subarray(0, PARSED_BYTES_MAX), UNANSWERED_MAX - this.#holdings.length)
      const chunk = end < bytes.length ? bytes.subarray(0, end) : bytes
      this.#unparsed = end < bytes.length ? bytes.subarray(end) : undefined
      this.#parseChunk(chunk)
      // Node has paused the socket because a body or the answers have no room. Node resumes it
      // itself.
      if (this.#unparsed && this.#socket.isPaused()) return
    }
  }
}

/**
 * Bytes that the client, or its kernel, has accepted. Node has no public property for bytes that
 * wait below a write.
 */
function takenBytes(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { bytesWritten?: number; writeQueueSize?: number } | null }
  return (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0)
}

/**
 * Whether Node itself has stopped reading a connection because its answers are not read. Node
 * resumes by itself. If its parser got requests before that, an assertion would fail that nothing
 * catches, and the process would end. Node has no public property for this state.
 */
const isPausedByNode = (socket: Socket): boolean => (socket as { _paused?: boolean })._paused === true

/**
 * Length of a prefix of these bytes that holds at most so many requests, whatever the bytes
 * contain.
 */
function endOfRequests(bytes: Buffer, count: number): number {
  let end = 0
  for (let found = 0; found < count; found += 1) {
    const index = bytes.indexOf(HEADER_END, end)
    if (index < 0) return bytes.length
    end = index + HEADER_END.length
  }
  // A body may be full of texts that look like the end of headers, so the prefix is never shorter
  // than so many requests of minimal length.
  return Math.max(end, Math.min(bytes.length, count * REQUEST_BYTES_MIN))
}
