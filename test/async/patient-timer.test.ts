import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { it } from 'node:test'
import { PatientTimer } from '../../src/async/patient-timer.ts'
import { standStill } from '../support/stand-still.ts'

it('an answer that arrived while the event loop was blocked is read before the time-out, even if reading takes several turns of the loop', async (t) => {
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  t.after(() => {
    socket.destroy()
    server.close()
  })
  await once(socket, 'connect')
  let isOver = false
  const timer = new PatientTimer(300, () => {
    isOver = true
  })
  socket.write('x')
  standStill(400)
  await once(socket, 'data')
  assert.equal(isOver, false)
  timer.end()
})

it('the time is over if the event loop turns and no answer comes', async () => {
  const startedAt = performance.now()
  await new Promise<void>((resolve) => {
    new PatientTimer(120, resolve)
  })
  assert.ok(performance.now() - startedAt >= 119)
})
