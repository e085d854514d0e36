import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HeldBytes } from '../../../src/http/server/held-bytes.ts'
import type { HeldConnection, Holding } from '../../../src/http/server/holding.ts'

const MB = 1_000_000
const TOO_MUCH = { code: 'RATE_LIMIT_EXCEEDED', status: 429 }

/** A connection with what is held for it, without a socket. */
class Connection implements HeldConnection {
  readonly copies: boolean
  readonly holdings: Holding[] = []
  readonly #held: HeldBytes
  readonly #client: string
  isEnded = false
  takesNothing = false

  constructor(held: HeldBytes, client: string, copies = false) {
    this.#held = held
    this.#client = client
    this.copies = copies
    held.open(this)
  }

  hold(bytes: number): Holding {
    const holding = this.#held.hold(this, 0, this.#held.ownerOf('client', this.#client))
    this.holdings.push(holding)
    holding.add(bytes)
    return holding
  }

  isIdle(): boolean {
    return this.takesNothing
  }

  end(): void {
    this.isEnded = true
    for (const holding of this.holdings) holding.release()
    this.#held.close(this)
  }
}

describe('the bytes that are held', () => {
  it('the bytes that are held for one client stay below its limit: the connection that holds most is closed', () => {
    const held = new HeldBytes(80 * MB)
    const connections = Array.from({ length: 30 }, () => new Connection(held, 'a'))
    const other = new Connection(held, 'b')
    other.hold(MB)
    for (const [index, connection] of connections.entries()) {
      connection.hold(MB + index)
      assert.ok(held.total <= (10 + 2) * MB + 1_000, `${held.total} bytes`)
    }
    assert.ok(connections.some(({ isEnded }) => isEnded))
    assert.equal(other.isEnded, false)
    for (const connection of [...connections, other]) connection.end()
    assert.equal(held.total, 0)
  })

  it('the bytes that are held may be one answer of any size, beside which its client starts nothing new only when the rest is much', () => {
    const held = new HeldBytes(80 * MB)
    const large = new Connection(held, 'a')
    large.hold(40 * MB).check()
    const others = Array.from({ length: 8 }, () => new Connection(held, 'a'))
    for (const other of others.slice(0, 7)) other.hold(MB).check()
    const last = others[7]?.hold(MB) ?? assert.fail()
    assert.throws(() => last.check(), TOO_MUCH)
    assert.equal(large.isEnded, false)
    new Connection(held, 'b').hold(MB).check()
  })

  it('the bytes that are held for an account are counted wherever its requests come from', () => {
    const held = new HeldBytes(80 * MB)
    const connections = Array.from({ length: 12 }, (_, index) => new Connection(held, `client ${index}`))
    for (const connection of connections) {
      const holding = connection.hold(0)
      holding.assign('account', 'x')
      holding.add(MB)
    }
    assert.ok(connections.some(({ isEnded }) => isEnded))
    const more = Array.from({ length: 2 }, (_, index) => new Connection(held, `more ${index}`).hold(MB))
    for (const holding of more) holding.assign('account', 'x')
    assert.throws(() => more[1]?.check(), TOO_MUCH)
    const other = new Connection(held, 'z').hold(MB)
    other.assign('account', 'y')
    other.check()
  })

  it('the bytes that are held for all clients stay below the limit of the process: the client that holds most loses first', () => {
    const held = new HeldBytes(80 * MB)
    const small = new Connection(held, 'small')
    small.hold(MB)
    const attackers = Array.from({ length: 40 }, (_, index) => `attacker ${index}`)
    const connections = attackers.flatMap((client) => Array.from({ length: 5 }, () => new Connection(held, client)))
    for (const connection of connections) {
      connection.hold(1.5 * MB)
      assert.ok(held.total <= 80 * MB + 2 * MB, `${held.total} bytes`)
    }
    assert.equal(small.isEnded, false)
  })

  it('while memory is short, the bytes that are held are freed by closing connections that read nothing', () => {
    const held = new HeldBytes(80 * MB)
    const reading = Array.from({ length: 4 }, (_, index) => new Connection(held, `reader ${index}`))
    const stalled = Array.from({ length: 6 }, (_, index) => new Connection(held, `stalled ${index}`))
    for (const connection of [...reading, ...stalled]) connection.hold(7 * MB)
    for (const connection of stalled) connection.takesNothing = true
    for (let sweeps = 0; sweeps < 4; sweeps += 1) assert.equal(held.sweep(), 0)
    assert.equal(held.sweep(), 5)
    assert.ok(held.total <= 40 * MB && reading.every(({ isEnded }) => !isEnded))
    for (let sweeps = 0; sweeps < 10; sweeps += 1) assert.equal(held.sweep(), 0)
  })

  it('the bytes that are held of a body that many answers share count once, for an answer that holds it', () => {
    const held = new HeldBytes(80 * MB)
    const body = Buffer.alloc(2 * MB)
    const connections = Array.from({ length: 100 }, (_, index) => new Connection(held, index < 50 ? 'a' : 'b'))
    for (const connection of connections) connection.hold(0).addBody(body)
    assert.equal(held.total, 2 * MB)
    for (const connection of connections.slice(0, 99)) {
      connection.end()
      assert.equal(held.total, 2 * MB)
    }
    assert.equal(held.ownerOf('client', 'b').bytes, 2 * MB)
    connections[99]?.end()
    assert.equal(held.total, 0)
  })

  it('the bytes that are held of a shared body are the bytes of each copy if connections are encrypted', () => {
    const held = new HeldBytes(80 * MB)
    const body = Buffer.alloc(MB)
    for (let count = 0; count < 5; count += 1) new Connection(held, 'a', true).hold(0).addBody(body)
    assert.equal(held.total, 5 * MB)
  })

  it('the bytes that are held of a stream are measured with each sweep', () => {
    const held = new HeldBytes(80 * MB)
    let buffered = MB
    const holding = new Connection(held, 'a').hold(0)
    holding.follow(() => buffered)
    assert.equal(held.total, MB)
    buffered = 3 * MB
    held.sweep()
    assert.equal(held.total, 3 * MB)
    buffered = 0
    holding.measure()
    assert.equal(held.total, 0)
    buffered = MB
    holding.measure()
    holding.release()
    held.sweep()
    assert.equal(held.total, 0)
  })

  it('the bytes that are held have a limit by the memory of the process', () => {
    const held = new HeldBytes()
    const connections = Array.from({ length: 40 }, (_, index) => new Connection(held, `${index}`))
    for (const connection of connections) connection.hold(1e9)
    assert.ok(connections.filter(({ isEnded }) => !isEnded).length < 10)
  })
})
