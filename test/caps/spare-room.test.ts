import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SpareRoom } from '../../src/caps/spare-room.ts'

const call = { slug: 'weather', mode: 'live' as const }
const sent = { times: { attempts: 1 } }

test('half of the room that a reply tells of is used without tickets at a time, for a second', (t) => {
  let now = 5_000
  t.mock.method(performance, 'now', () => now)
  const room = new SpareRoom()
  const take = () => room.take('weather', 'shared')
  assert.equal(take(), undefined)
  room.learn(call, { ...sent, room: 5 })
  const [first, second] = [take(), take()]
  assert.ok(first && second)
  assert.equal(take(), undefined)
  // If the room grows, calls that are already running have no more room.
  room.learn(call, { ...sent, room: 5 })
  assert.equal(take(), undefined)
  first()
  assert.ok(take())
  second()
  now += 1_001
  assert.equal(take(), undefined)
  room.learn(call, { ...sent, room: 5 })
  assert.ok(take())
  room.learn(call, sent)
  assert.equal(take(), undefined)
})

test('the room of a cap is known for its bucket alone, and only by replies of calls that had a permit', () => {
  const room = new SpareRoom()
  room.learn({ ...call, providerKey: { id: 'a', bucket: 'key-a' } }, { ...sent, room: 4 })
  assert.equal(room.take('weather', 'shared'), undefined)
  assert.ok(room.take('weather', 'key-a'))
  room.learn({ ...call, mode: 'test' }, { ...sent, room: 4 })
  room.learn(call, { times: { attempts: 0 }, room: 4 })
  assert.equal(room.take('weather', 'shared'), undefined)
})
