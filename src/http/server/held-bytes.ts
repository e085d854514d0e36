import { getHeapStatistics } from 'node:v8'
import { type HeldConnection, Holding, type HoldingLedger, type Owner } from './holding.ts'

/** The share of the memory limit that all clients together may make the process hold. */
const PROCESS_SHARE = 1 / 4

/** The share of the clients' bytes that an owner, a client address or an account, may use. */
const OWNER_SHARE = 1 / 8

/** When a limit was reached, connections are closed until so much of the limit is left in use. */
const RELIEVED_SHARE = 3 / 4

/** From this share of its own limit on, an owner starts nothing new. */
const REFUSED_SHARE = 3 / 4

/** From this share of the process' limit on, connections that take nothing are closed. */
const TIGHT_SHARE = 1 / 2

/**
 * Sweeps, one a second, after which a connection that takes nothing is closed while bytes are
 * short.
 */
const IDLE_SWEEPS_MAX = 5

/** A body that several answers may share; `payer` is the answer that it is counted with. */
interface SharedBody {
  bytes: number
  holders: Set<Holding>
  payer: Holding
}

/**
 * Counts the bytes that this process holds for clients: answers that were not read, bodies that
 * have not arrived, and what each connection and each request takes besides. Everything that is
 * held has at most two owners, the client's address and the account, of which each has a limit, as
 * the process has. At a limit the connection that holds most is closed, so that memory stays
 * bounded whatever clients do; a little before it, requests are refused.
 */
export class HeldBytes implements HoldingLedger {
  readonly #bytesMax: number
  readonly #ownerBytesMax: number
  readonly #owners = new Map<string, Owner>()
  readonly #connections = new Map<HeldConnection, number>()
  readonly #bodies = new Map<Buffer, SharedBody>()
  readonly #measured = new Set<Holding>()
  #total = 0
  #closed = 0

  /** `bytesMax`: for all clients together. Default: by the memory limit of the process. */
  constructor(bytesMax = heldBytesMax()) {
    this.#bytesMax = bytesMax
    this.#ownerBytesMax = Math.floor(bytesMax * OWNER_SHARE)
  }

  get total(): number {
    return this.#total
  }

  open(connection: HeldConnection): void {
    this.#connections.set(connection, 0)
  }

  close(connection: HeldConnection): void {
    this.#connections.delete(connection)
  }

  /**
   * Begins to hold bytes on a connection. They belong to its client, if the client is known
   * already.
   */
  hold(connection: HeldConnection, bytes: number, client?: Owner): Holding {
    const holding = new Holding(this, connection, client)
    client?.holdings.add(holding)
    holding.add(bytes)
    return holding
  }

  /**
   * Measures again what is counted by measuring. While bytes are short, closes connections that
   * have taken nothing for some seconds. To be called once a second.
   * @returns connections that were closed since the last time
   */
  sweep(): number {
    for (const holding of this.#measured) holding.measure()
    if (this.#total > this.#bytesMax * RELIEVED_SHARE * TIGHT_SHARE) this.#countIdle()
    if (this.#total > this.#bytesMax * TIGHT_SHARE) this.#endIdle(IDLE_SWEEPS_MAX, this.#bytesMax * TIGHT_SHARE)
    const closed = this.#closed
    this.#closed = 0
    return closed
  }

  ownerOf(kind: Owner['kind'], name: string): Owner {
    const key = `${kind} ${name}`
    const known = this.#owners.get(key)
    if (known) return known
    const owner = { kind, key, bytes: 0, holdings: new Set<Holding>() }
    this.#owners.set(key, owner)
    return owner
  }

  disown(owner: Owner, holding: Holding): void {
    owner.holdings.delete(holding)
    if (owner.holdings.size === 0 && this.#owners.get(owner.key) === owner) this.#owners.delete(owner.key)
  }

  /**
   * Whether an owner may start nothing new. The largest of its answers does not count, because an
   * answer of any size may come.
   */
  isFull(owner: Owner): boolean {
    const bytesMax = this.#ownerBytesMax * REFUSED_SHARE
    return owner.bytes > bytesMax && owner.bytes - largest(owner.holdings) > bytesMax
  }

  /**
   * Counts more or fewer bytes of a holding and its owners, and brings who is above a limit below
   * it.
   */
  count(bytes: number, client: Owner | undefined, account: Owner | undefined): void {
    this.#total += bytes
    if (client) client.bytes += bytes
    if (account) account.bytes += bytes
    if (bytes <= 0) return
    if (client && client.bytes > this.#ownerBytesMax) this.#relieveOwner(client)
    if (account && account.bytes > this.#ownerBytesMax) this.#relieveOwner(account)
    if (this.#total > this.#bytesMax) this.#relieveProcess()
  }

  /** Counts a body with the first answer that it is part of. */
  share(body: Buffer, holding: Holding): void {
    const known = this.#bodies.get(body)
    if (known) known.holders.add(holding)
    else this.#bodies.set(body, { bytes: body.length, holders: new Set([holding]), payer: holding })
    if (!known) holding.add(body.length)
  }

  /** @internal The next answer pays for a body if the answer that paid for it is gone. */
  unshare(body: Buffer, holding: Holding): void {
    const shared = this.#bodies.get(body)
    if (!shared?.holders.delete(holding)) return
    const [next] = shared.holders
    if (next === undefined) this.#bodies.delete(body)
    else if (shared.payer === holding) {
      shared.payer = next
      next.add(shared.bytes)
    }
  }

  follow(holding: Holding, isMeasured: boolean): void {
    if (isMeasured) this.#measured.add(holding)
    else this.#measured.delete(holding)
  }

  #countIdle(): void {
    for (const [connection, idle] of this.#connections)
      this.#connections.set(connection, connection.isIdle() ? idle + 1 : 0)
  }

  /** Closes connections that were idle for so many sweeps, until so many bytes are held. */
  #endIdle(sweeps: number, bytesMax: number): void {
    const idle = [...this.#connections].filter(([, count]) => count >= sweeps)
    for (const [connection] of idle.toSorted(([, a], [, b]) => b - a)) {
      if (this.#total <= bytesMax) return
      this.#end(connection)
    }
  }

  /**
   * The largest answer alone may exceed what its owner may hold: it could never be fetched
   * otherwise.
   */
  #relieveOwner(owner: Owner): void {
    if (owner.bytes - largest(owner.holdings) <= this.#ownerBytesMax) return
    this.#endHeaviest(owner, this.#ownerBytesMax * RELIEVED_SHARE)
  }

  /**
   * First connections that take nothing; then the client that holds most comes down to half of
   * that, and so on.
   */
  #relieveProcess(): void {
    const bytesMax = this.#bytesMax * RELIEVED_SHARE
    this.#endIdle(1, bytesMax)
    while (this.#total > bytesMax) {
      let heaviest: Owner | undefined
      for (const owner of this.#owners.values())
        if (owner.kind === 'client' && owner.bytes > (heaviest?.bytes ?? 0)) heaviest = owner
      if (!heaviest) return
      this.#endHeaviest(heaviest, Math.max(heaviest.bytes / 2, heaviest.bytes - (this.#total - bytesMax)))
    }
  }

  #endHeaviest(owner: Owner, bytesMax: number): void {
    for (const holding of [...owner.holdings].toSorted((a, b) => b.bytes - a.bytes)) {
      if (owner.bytes <= bytesMax) return
      if (!holding.isReleased) this.#end(holding.connection)
    }
  }

  #end(connection: HeldConnection): void {
    this.#closed += 1
    connection.end()
  }
}

function largest(holdings: Set<Holding>): number {
  let bytes = 0
  for (const holding of holdings) bytes = Math.max(bytes, holding.bytes)
  return bytes
}

/** What a process may hold for all clients together, bytes. */
export function heldBytesMax(): number {
  return Math.floor(memoryLimit() * PROCESS_SHARE)
}

/**
 * The heap that V8 may take, or half of what the container may, in bytes: buffers are outside the
 * heap.
 */
function memoryLimit(): number {
  const container = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return Math.min(getHeapStatistics().heap_size_limit, container / 2)
}
