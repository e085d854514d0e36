import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { subscriberOf } from '../../throttles/client-network.ts'

/** Bodies of at least this size are counted once, however many answers share them. */
const SHARED_BYTES_MIN = 16 * 1024

/** A connection for which bytes are held. */
export interface HeldConnection {
  /**
   * Whether each answer takes its own copy of a body: TLS encrypts the body for each connection.
   */
  readonly copies: boolean
  /**
   * Updates the counts that are measured.
   *
   * @returns whether bytes wait and the client has read none since the last call
   */
  isIdle: () => boolean
  /** Releases the bytes that are held for the connection, then closes it. */
  end: () => void
}

/** A client address or an account. */
export interface Owner {
  kind: 'client' | 'account'
  key: string
  bytes: number
  holdings: Set<Holding>
}

/** The interface of `HeldBytes` that a holding needs. */
export interface HoldingLedger {
  ownerOf: (kind: Owner['kind'], name: string) => Owner
  disown: (owner: Owner, holding: Holding) => void
  isFull: (owner: Owner) => boolean
  count: (bytes: number, client: Owner | undefined, account: Owner | undefined) => void
  share: (body: Buffer, holding: Holding) => void
  unshare: (body: Buffer, holding: Holding) => void
  follow: (holding: Holding, isMeasured: boolean) => void
}

/** The bytes that are held for one request and its answer, or for a connection. */
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
   * Counts the bytes for this owner too from now on. If the holding already has an owner of this
   * kind, that owner stays.
   */
  assign(kind: Owner['kind'], name: string): void {
    if (this.isReleased || (kind === 'client' ? this.#client : this.#account)) return
    const owner = this.#held.ownerOf(kind, name)
    if (kind === 'client') this.#client = owner
    else this.#account = owner
    owner.holdings.add(this)
    owner.bytes += this.bytes
  }

  /** @throws GatewayError RATE_LIMIT_EXCEEDED if an owner may not start anything new */
  check(): void {
    const isFull = (owner: Owner | undefined): boolean => owner !== undefined && this.#held.isFull(owner)
    if (!isFull(this.#client) && !isFull(this.#account)) return
    throw new GatewayError('RATE_LIMIT_EXCEEDED', {
      message:
        'The gateway holds too many bytes for you: answers that you have not read, or request bodies that are still arriving.',
      hint: 'Read the pending answers, finish the pending bodies, and send the request again',
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

  /** Counts the body of the answer, which other answers may share. */
  addBody(body: Buffer): void {
    if (this.isReleased) return
    if (body.length < SHARED_BYTES_MIN || this.connection.copies) {
      this.add(body.length)
      return
    }
    this.#body = body
    this.#held.share(body, this)
  }

  /** Counts as many bytes as `measure` returns, now and at every later measurement. */
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

/** A request of Node with its holding. */
type Held = Pick<IncomingMessage, 'socket'> & { [HOLDING]?: Holding }

/** The holding of a request; undefined for a request that this process makes itself. */
export function holdingOf(request: Held): Holding | undefined {
  return request[HOLDING]
}

export function noteHolding(request: Held, holding: Holding): void {
  request[HOLDING] = holding
}

/**
 * Counts the holding of a request for its client.
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED if too many bytes are held for the client
 */
export function checkHeld(request: FastifyRequest): void {
  const holding = holdingOf(request.raw)
  if (!holding || request.routeOptions.config.isProbe) return
  if (!holding.client) holding.assign('client', subscriberOf(request.ip))
  holding.check()
}

/**
 * Counts the holding of a request for its account too, or for strangers who use a key of the
 * account (`requestSubject`).
 *
 * @throws GatewayError RATE_LIMIT_EXCEEDED
 */
export function countBytesForAccount({ raw }: { raw: Held }, subject: string): void {
  const holding = holdingOf(raw)
  holding?.assign('account', subject)
  holding?.check()
}

/**
 * Counts the body of an answer until it is written: the bytes of a text or buffer, or what a stream
 * has buffered.
 */
export function holdAnswer(request: Held, response: ServerResponse, payload: unknown): void {
  const holding = holdingOf(request)
  if (!holding) return
  if (Buffer.isBuffer(payload)) holding.addBody(payload)
  else if (typeof payload === 'string') holding.add(payload.length)
  else if (payload instanceof Readable) holding.follow(() => bufferedBytes(payload) + response.writableLength)
}

/** Bytes that a stream has buffered in both directions. */
export function bufferedBytes(stream: Readable & { writableLength?: number }): number {
  return stream.readableLength + (stream.writableLength ?? 0)
}
