/**
 * Bytes that are kept besides the newest packet. A longer head is refused before the next packet is
 * read.
 */
const KEPT_MAX = 16 * 1024

/**
 * Most packets that are kept separately. Beyond it they are joined, because a packet may have a
 * single byte.
 */
const PACKETS_MAX = 64

const HEADER_END = Buffer.from('\r\n\r\n')

/** A request line up to the end of its address, at one position, after any line ends. */
const AT_PLACE = /[\r\n]{0,4}[A-Z-]{1,20} ([^ \r\n]*)/y
const BEHIND_LINE = /\r\n[A-Z-]{1,20} ([^ \r\n]*)/g

/**
 * The bytes of a connection since its last complete request head. If a head is refused, these are
 * the bytes that have arrived of it.
 */
export class RecentBytes {
  #packets: Buffer[] = []
  #length = 0

  /** Records a packet before it is parsed. */
  add(packet: Buffer): void {
    while (this.#packets[0] && this.#length - this.#packets[0].length >= KEPT_MAX)
      this.#length -= this.#packets.shift()?.length ?? 0
    if (this.#packets.length >= PACKETS_MAX) this.#packets = [Buffer.concat(this.#packets)]
    this.#packets.push(packet)
    this.#length += packet.length
  }

  /** A request head ended in the newest packet, so all bytes up to its end are dropped. */
  endHead(): void {
    const packet = this.#packets.at(-1) ?? Buffer.alloc(0)
    const end = packet.lastIndexOf(HEADER_END)
    this.#packets.length = 0
    this.#length = 0
    const isWhole = end >= 0 && end + HEADER_END.length === packet.length
    if (isWhole) return
    const rest = end < 0 ? packet : packet.subarray(end + HEADER_END.length)
    // A copy, because a view would keep the whole packet in memory.
    this.#packets.push(Buffer.from(rest.subarray(-KEPT_MAX)))
    this.#length = this.#packets[0]?.length ?? 0
  }

  /**
   * The newest packet was part of a body. If the body is complete, a copy is kept, because the next
   * head may begin in the packet.
   */
  endBody(isComplete: boolean): void {
    const packet = this.#packets.at(-1)
    this.#packets = isComplete && packet ? [Buffer.from(packet)] : []
    this.#length = this.#packets[0]?.length ?? 0
  }

  /**
   * The longest address among the request lines that may begin in these bytes. A request begins at
   * the start of a packet, at the start of a line, or after a body. (A body ends with a packet
   * unless requests are pipelined.)
   */
  get longestAddress(): string {
    const text = Buffer.concat(this.#packets).toString('latin1')
    const found = [...text.matchAll(BEHIND_LINE)]
    let place = 0
    for (const { length } of this.#packets) {
      AT_PLACE.lastIndex = place
      const match = AT_PLACE.exec(text)
      if (match) found.push(match)
      place += length
    }
    return found.reduce((longest, [, address = '']) => (address.length > longest.length ? address : longest), '')
  }
}
