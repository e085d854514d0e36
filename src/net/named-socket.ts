import { Socket } from 'node:net'
import { lookup } from './lookup.ts'

/**
 * A socket whose `connect(port, host)` looks the host up by `lookup`, for libraries that take no
 * look-up of ours.
 */
export class NamedSocket extends Socket {
  override connect(...given: unknown[]): this {
    const [port, host, ...listener] = given
    const isNamed = typeof port === 'number' && typeof host === 'string'
    return Reflect.apply(super.connect, this, isNamed ? [{ port, host, lookup }, ...listener] : given)
  }
}
