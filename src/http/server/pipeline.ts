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
 * Requests of one connection that may be unanswered at once; the connection is not read while there
 * are as many.
 */
const UNANSWERED_MAX = 8

/**
 * Each unanswered request may listen for the end of its connection; Node warns of more than ten
 * listeners as of a leak.
 */
const LISTENERS_MAX = 10 + 2 * UNANSWERED_MAX

/** Bytes of the shortest request there is. */
const REQUEST_BYTES_MIN = 18

/**
 * What a connection, and a request that is not answered, take in Node and here besides the bytes
 * that came and go.
 */
const CONNECTION_BYTES = 8 * 1_024
const REQUEST_BYTES = 8 * 1_024

/** Bytes that are parsed at once: what a body costs is looked at in between. */
const PARSED_BYTES_MAX = 8 * 1_024

/** A client that takes fewer bytes than these between two sweeps, each a second, takes none. */
const TAKEN_BYTES_MIN = 1_024

const HEADER_END = Buffer.from('\r\n\r\n')

const gates = new WeakMap<Socket, PipelineGate>()

/**
 * Bounds HTTP/1.1 pipelining. Node hands over every request of what it has read at once, 1 700 in
 * 64 KB, and each answer is made before the first answer is read. With this, a connection's
 * requests are parsed only as fast as their answers are taken, and what is held for each of them is
 * counted. The connections of a proxy are many clients': what is held for their requests is
 * assigned when the client is known.
 */
export function boundPipelining(server: Server | HttpsServer, held: HeldBytes, isProxy: IsProxy): void {
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection'
  const turns = new FairTurns()
  const refuse = (socket: Socket, code: string): void => {
    if (!server.emit('clientError', Object.assign(new Error(code), { code }), socket)) socket.destroy()
  }
  server.on(event, (socket: Socket) => gates.set(socket, new PipelineGate(socket, { held, turns, isProxy, refuse })))
  // Before the request is handled, which asks for what is held.
  server.prependListener('request', (request, response) => gates.get(request.socket)?.count(request, response))
  // If nobody listens, Node closes the connection without a word.
  server.on('connect', ({ socket }) => gates.get(socket)?.refuse('CONNECT'))
}

/**
 * The bytes of a connection since its last complete request head; undefined for a server without
 * the bound.
 */
export function recentBytes(socket: Socket): RecentBytes | undefined {
  return gates.get(socket)?.recent
}

interface GateDeps {
  held: HeldBytes
  turns: FairTurns
  isProxy: IsProxy
  /** Answers what is refused, and ends the connection. */
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
  /**
   * What is held for each request that is not answered, in the order of the requests, which is also
   * the order of the answers.
   */
  readonly #holdings: Holding[] = []
  #newest: IncomingMessage | undefined
  /** What has arrived of a request's head that is not complete. */
  #headBytes = 0
  readonly #body = new BodyParts()
  #isRefused = false
  #takenBytes = 0
  #unparsed: Buffer | undefined
  /** Requests whose head has arrived. */
  #heads = 0
  /** Paused here, and not by the parser for want of room in a body or on the socket. */
  #isPaused = false
  /** Until its client's next turn. */
  #isWaiting = false
  /** One listener for all answers of the connection spares a closure each. */
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

  /** Counts a request until its answer is written or its connection is gone. */
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
   * Refuses what the connection sends from now on. After a CONNECT the parser belongs to another
   * connection, and Node listens no longer to the socket. The socket is read and thrown away,
   * because the reset that follows unread bytes would take the answer along.
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

  /** `unread`: bytes that Node has read from the connection and keeps. */
  #countOwn(unread = 0): void {
    this.#own.set(CONNECTION_BYTES + this.#headBytes + (this.#unparsed?.length ?? 0) + unread)
  }

  /**
   * Hands bytes to the parser. If they belong to the body of a request that was answered before,
   * they are thrown away.
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

  /** Fails closed: the rest of a body that costs too much is refused. */
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
   * Whether the client may begin a request now; the clients of a proxy are not known before the
   * requests are.
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
      // Node paused it, because a body or the answers have no room. Node resumes the socket itself.
      if (this.#unparsed && this.#socket.isPaused()) return
    }
  }
}

/**
 * Bytes that the other side, or the kernel for it, has taken. Node has no public name for what
 * waits below a write.
 */
function takenBytes(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { bytesWritten?: number; writeQueueSize?: number } | null }
  return (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0)
}

/**
 * Whether Node itself has stopped reading a connection because its answers are not taken. It starts
 * again by itself; requests that its parser is given before then fail an assertion that nothing
 * catches, which ends the process. Node has no public name for this state.
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
  // A body may be full of what looks like ends of headers; it is not cut smaller than requests
  // could be.
  return Math.max(end, Math.min(bytes.length, count * REQUEST_BYTES_MIN))
}
