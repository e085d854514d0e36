import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SpareRoom } from '../../src/caps/spare-room.ts'

const call = { slug: 'weather', mode: 'live' as const }
const sent = { times: { attempts: 1 } }

test('half of the room that a reply tells of is used without tickets, for a second, and none that is not told of', (t) => {
  let now = 5_000
  t.mock.method(performance, 'now', () => now)
  const room = new SpareRoom()
  const take = () => room.take('weather', 'shared')
  assert.equal(take(), false)
  room.learn(call, { ...sent, room: 5 })
  assert.deepEqual([take(), take(), take()], [true, true, false])
  room.learn(call, { ...sent, room: 5 })
  now += 1_001
  assert.equal(take(), false)
  room.learn(call, { ...sent, room: 5 })
  room.learn(call, sent)
  assert.equal(take(), false)
})

test('the room of a cap is known for its bucket alone, and only by replies of calls that had a permit', () => {
  const room = new SpareRoom()
  room.learn({ ...call, providerKey: { id: 'a', bucket: 'key-a' } }, { ...sent, room: 4 })
  assert.equal(room.take('weather', 'shared'), false)
  assert.equal(room.take('weather', 'key-a'), true)
  room.learn({ ...call, mode: 'test' }, { ...sent, room: 4 })
  room.learn(call, { times: { attempts: 0 }, room: 4 })
  assert.equal(room.take('weather', 'shared'), false)
})
