import { connect as connectTcp, type TcpNetConnectOpts } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AbstractConnector, type StandaloneConnectionOptions } from 'ioredis'
import { lookup } from '../net/lookup.ts'

/**
 * Opens the sockets of ioredis with our look-up of names. Its own connector only uses Node's
 * look-up.
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
    // ioredis may give up a connection in the tick in which it began.
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
