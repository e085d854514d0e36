import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { subscriberOf } from '../../throttles/client-network.ts'

/** Bodies from this size on are counted once, however many answers they are part of. */
const SHARED_BYTES_MIN = 16 * 1024

/** A connection for which bytes are held. */
export interface HeldConnection {
  /** Whether each answer is a copy of its own: TLS encrypts a body once for each connection. */
  readonly copies: boolean
  /**
   * Counts again what is counted by measuring.
   *
   * @returns whether bytes wait and the client took none since the last time
   */
  isIdle: () => boolean
  /** Releases what is held for it, then closes it. */
  end: () => void
}

/** A client address or an account. */
export interface Owner {
  kind: 'client' | 'account'
  key: string
  bytes: number
  holdings: Set<Holding>
}

/** What a holding needs of the account that counts it. */
export interface HoldingLedger {
  ownerOf: (kind: Owner['kind'], name: string) => Owner
  disown: (owner: Owner, holding: Holding) => void
  isFull: (owner: Owner) => boolean
  count: (bytes: number, client: Owner | undefined, account: Owner | undefined) => void
  share: (body: Buffer, holding: Holding) => void
  unshare: (body: Buffer, holding: Holding) => void
  follow: (holding: Holding, isMeasured: boolean) => void
}

/** What is held for one request and its answer, or for a connection besides. */
export class Holding {
  readonly connection: HeldConnection
  readonly #held: HoldingLedger
  #client: Owner | undefined
  #account: Owner | undefined
  #body: Buffer | undefined
  #measure: (() => number) | undefined
  #measured = 0
  bytes = 0
  isReleased = false

  constructor(held: HoldingLedger, connection: HeldConnection, client: Owner | undefined) {
    this.#held = held
    this.connection = connection
    this.#client = client
  }

  get client(): Owner | undefined {
    return this.#client
  }

  /**
   * Counts the bytes for this client or account too from now on. The first of each kind stays.
   */
  assign(kind: Owner['kind'], name: string): void {
    if (this.isReleased || (kind === 'client' ? this.#client : this.#account)) return
    const owner = this.#held.ownerOf(kind, name)
    if (kind === 'client') this.#client = owner
    else this.#account = owner
    owner.holdings.add(this)
    owner.bytes += this.bytes
  }

  /** @throws GatewayError RATE_LIMIT_EXCEEDED if an owner may start nothing new */
  check(): void {
    const isFull = (owner: Owner | undefined): boolean => owner !== undefined && this.#held.isFull(owner)
    if (!isFull(this.#client) && !isFull(this.#account)) return
    throw new GatewayError('RATE_LIMIT_EXCEEDED', {
      message: 'Too many of your answers are unread, or too many bodies have not arrived.',
      hint: 'Read the answers and send the request again',
      retryAfterMs: 1_000,
    })
  }

  add(bytes: number): void {
    if (this.isReleased) return
    this.bytes += bytes
    this.#held.count(bytes, this.#client, this.#account)
  }

  set(bytes: number): void {
    if (bytes !== this.bytes) this.add(bytes - this.bytes)
  }

  /** Holds the body of the answer, which may be part of other answers too. */
  addBody(body: Buffer): void {
    if (this.isReleased) return
    if (body.length < SHARED_BYTES_MIN || this.connection.copies) {
      this.add(body.length)
      return
    }
    this.#body = body
    this.#held.share(body, this)
  }

  /** Holds as many bytes as this says now, and whenever `measure` is called or a sweep comes. */
  follow(measure: () => number): void {
    if (this.isReleased || this.#measure) return
    this.#measure = measure
    this.#held.follow(this, true)
    this.measure()
  }

  measure(): void {
    if (!this.#measure) return
    const [before, now] = [this.#measured, this.#measure()]
    this.#measured = now
    this.add(now - before)
  }

  release(): void {
    if (this.isReleased) return
    this.set(0)
    this.isReleased = true
    if (this.#body) this.#held.unshare(this.#body, this)
    if (this.#client) this.#held.disown(this.#client, this)
    if (this.#account) this.#held.disown(this.#account, this)
    if (this.#measure) this.#held.follow(this, false)
  }
}

const HOLDING = Symbol('holding')

/** A request as Node made it, with what is held for it. */
type Held = Pick<IncomingMessage, 'socket'> & { [HOLDING]?: Holding }

/** What is held for a request; undefined for a request that this process makes for itself. */
export function holdingOf(request: Held): Holding | undefined {
  return request[HOLDING]
}

export function noteHolding(request: Held, holding: Holding): void {
  request[HOLDING] = holding
}

/**
 * What is held for this request is its client's.
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED if the client has too much
 */
export function checkHeld(request: FastifyRequest): void {
  const holding = holdingOf(request.raw)
  if (!holding || request.routeOptions.config.isProbe) return
  if (!holding.client) holding.assign('client', subscriberOf(request.ip))
  holding.check()
}

/**
 * Counts the bytes that are held for a request for its account too.
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED
 */
export function countBytesForAccount({ raw }: { raw: Held }, accountId: string): void {
  const holding = holdingOf(raw)
  holding?.assign('account', accountId)
  holding?.check()
}

/**
 * Counts the body of an answer until it is written: a text, bytes, or a stream with what it has
 * buffered.
 */
export function holdAnswer(request: Held, response: ServerResponse, payload: unknown): void {
  const holding = holdingOf(request)
  if (!holding) return
  if (Buffer.isBuffer(payload)) holding.addBody(payload)
  else if (typeof payload === 'string') holding.add(payload.length)
  else if (payload instanceof Readable) holding.follow(() => bufferedBytes(payload) + response.writableLength)
}

/** Bytes that wait on either side of a stream. */
export function bufferedBytes(stream: Readable & { writableLength?: number }): number {
  return stream.readableLength + (stream.writableLength ?? 0)
}
