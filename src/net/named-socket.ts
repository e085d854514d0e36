import { Socket } from 'node:net'
import { lookup } from './lookup.ts'

/**
 * A socket whose `connect(port, host)` uses our `lookup`, for libraries that do not accept a
 * look-up function.
 */
export class NamedSocket extends Socket {
  override connect(...given: unknown[]): this {
    const [port, host, ...listener] = given
    const isNamed = typeof port === 'number' && typeof host === 'string'
    return Reflect.apply(super.connect, this, isNamed ? [{ port, host, lookup }, ...listener] : given)
  }
}
