import { connect as connectTcp, type TcpNetConnectOpts } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AbstractConnector, type StandaloneConnectionOptions } from 'ioredis'
import { lookup } from '../net/lookup.ts'

/**
 * Opens the sockets of ioredis, whose own connector takes no other look-up of names than Node's.
 */
export class NamedConnector extends AbstractConnector {
  readonly #options: StandaloneConnectionOptions

  constructor(options: unknown) {
    const ours = options as StandaloneConnectionOptions
    super(ours.disconnectTimeout ?? 0)
    this.#options = ours
  }

  async connect(): Promise<AbstractConnector['stream']> {
    const { host = 'localhost', port = 6379, path, family, tls } = this.#options
    this.connecting = true
    // A connection may be given up in the tick in which it is begun.
    await new Promise(process.nextTick)
    if (!this.connecting) throw new Error('Connection is closed.')
    const address: TcpNetConnectOpts = { host, port, lookup, ...(family === undefined ? {} : { family }) }
    this.stream = tls ? connectTls({ ...address, ...tls }) : connectTcp(path ? { path } : address)
    this.stream.once('error', (error) => {
      this.firstError = error
    })
    return this.stream
  }
}
