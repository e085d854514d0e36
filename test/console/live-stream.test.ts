import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { streamLive } from '../../src/console/live-stream.ts'
import { createLog } from '../../src/log.ts'
import { until } from '../support/gateway.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** More than the buffers of a connection hold. */
const MUCH = 'x'.repeat(16_000_000)

it('the server stops writing to a live stream that nobody reads when its session has ended, and the client gets the end of the stream', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let response: ServerResponse | undefined
  let isAllowed = true
  let snapshots = 0
  const server = createServer((_request, answering) => {
    response = answering
    const snapshot = async () => {
      snapshots += 1
      return MUCH
    }
    streamLive(answering, { log, snapshot, isAllowed: async () => isAllowed })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.after(() => {
    client.destroy()
    server.close()
  })
  client.pause()
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => response?.writableNeedDrain === true)
  isAllowed = false
  t.mock.timers.tick(5_000)
  await until(() => response?.writableEnded === true)
  const atEnd = snapshots
  // If a stream had stayed open, it would have written after the end.
  for (let count = 0; count < 10; count += 1) {
    t.mock.timers.tick(1_000)
    await nextTurn()
  }
  assert.equal(snapshots, atEnd)
  let last = ''
  client.on('data', (bytes) => {
    last = `${last}${bytes.toString('latin1')}`.slice(-5)
  })
  client.resume()
  await until(() => last === '0\r\n\r\n')
})
