import { getHeapStatistics } from 'node:v8'
import { type HeldConnection, Holding, type HoldingLedger, type Owner } from './holding.ts'

/** The share of the memory limit that may be held for all clients together. */
const PROCESS_SHARE = 1 / 4

/** The share of these bytes that may be held for one owner: a client address or an account. */
const OWNER_SHARE = 1 / 8

/**
 * When a limit is reached, connections are closed until the held bytes are down to this share of
 * it.
 */
const RELIEVED_SHARE = 3 / 4

/** Above this share of its own limit, an owner cannot start new requests. */
const REFUSED_SHARE = 3 / 4

/** Above this share of the process' limit, connections that read nothing are closed. */
const TIGHT_SHARE = 1 / 2

/**
 * Sweeps (one a second) after which a connection that reads nothing is closed, while memory is
 * short.
 */
const IDLE_SWEEPS_MAX = 5

/** A body that several answers may share. It is counted with only one of them, the `payer`. */
interface SharedBody {
  bytes: number
  holders: Set<Holding>
  payer: Holding
}

/**
 * Counts the bytes that this process holds for clients: answers that were not read yet, bodies that
 * have not arrived completely, and the overhead of each connection and request. The bytes have at
 * most two owners, the client address and the account. Each owner has a limit, and so has the
 * process. At a limit, the connection that holds the most bytes is closed, so that memory stays
 * bounded whatever clients do. Shortly before a limit, new requests are refused.
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

  /**
   * @param bytesMax limit for all clients together; default: a share of the process' memory limit
   */
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
   * Begins to count bytes that are held on a connection. They count for its client too, if the
   * client is known.
   */
  hold(connection: HeldConnection, bytes: number, client?: Owner): Holding {
    const holding = new Holding(this, connection, client)
    client?.holdings.add(holding)
    holding.add(bytes)
    return holding
  }

  /**
   * Updates the counts that are measured. While memory is short, also closes connections that have
   * read nothing for some seconds. Call it once a second.
   * @returns the number of connections that were closed since the last call
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
   * Whether an owner may not start anything new. Its largest answer does not count, because a
   * single answer may have any size.
   */
  isFull(owner: Owner): boolean {
    const bytesMax = this.#ownerBytesMax * REFUSED_SHARE
    return owner.bytes > bytesMax && owner.bytes - largest(owner.holdings) > bytesMax
  }

  /**
   * Adds bytes (or removes, if negative) to the process and the owners. If a limit is exceeded,
   * closes connections until it is not.
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

  /** Counts a shared body with the first answer that contains it. */
  share(body: Buffer, holding: Holding): void {
    const known = this.#bodies.get(body)
    if (known) known.holders.add(holding)
    else this.#bodies.set(body, { bytes: body.length, holders: new Set([holding]), payer: holding })
    if (!known) holding.add(body.length)
  }

  /**
   * @internal Lets another answer count a shared body when the answer that counted it has ended.
   */
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

  /**
   * Closes connections that were idle for so many sweeps, until no more than `bytesMax` are held.
   */
  #endIdle(sweeps: number, bytesMax: number): void {
    const idle = [...this.#connections].filter(([, count]) => count >= sweeps)
    for (const [connection] of idle.toSorted(([, a], [, b]) => b - a)) {
      if (this.#total <= bytesMax) return
      this.#end(connection)
    }
  }

  /**
   * Closes connections of an owner above its limit. The owner's largest answer does not count,
   * because otherwise nobody could ever fetch an answer above the limit.
   */
  #relieveOwner(owner: Owner): void {
    if (owner.bytes - largest(owner.holdings) <= this.#ownerBytesMax) return
    this.#endHeaviest(owner, this.#ownerBytesMax * RELIEVED_SHARE)
  }

  /**
   * Closes connections that read nothing. If that is not enough, reduces the client that holds the
   * most, at most to half of its bytes, and repeats this.
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

/** Most bytes that a process may hold for all clients together. */
export function heldBytesMax(): number {
  return Math.floor(memoryLimit() * PROCESS_SHARE)
}

/**
 * The heap limit of V8, or half of the container's memory limit if that is less, in bytes. Only
 * half, because buffers are outside of the heap.
 */
function memoryLimit(): number {
  const container = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return Math.min(getHeapStatistics().heap_size_limit, container / 2)
}
