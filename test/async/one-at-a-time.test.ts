import assert from 'node:assert/strict'
import { it } from 'node:test'
import { OneAtATime, TooManyWaitingError } from '../../src/async/one-at-a-time.ts'

/** Work that ends when the test says so. */
function createWork() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const work = { hasBegun: false, end: resolve, fail: reject, run: () => promise }
  work.run = () => {
    work.hasBegun = true
    return promise
  }
  return work
}

it('work of one key runs one after the other, and another key does not wait for it', async () => {
  const queue = new OneAtATime(2)
  const [first, second, other] = [createWork(), createWork(), createWork()]
  const running = [queue.run('a', first.run), queue.run('a', second.run), queue.run('b', other.run)]
  await Promise.resolve()
  assert.deepEqual([first.hasBegun, second.hasBegun, other.hasBegun], [true, false, true])
  other.end('other')
  assert.equal(await running[2], 'other')
  first.end('first')
  assert.equal(await running[0], 'first')
  second.end('second')
  assert.equal(await running[1], 'second')
})

it('work that fails lets the next work of its key run, and its caller gets the failure', async () => {
  const queue = new OneAtATime(1)
  const [first, second] = [createWork(), createWork()]
  const [failing, following] = [queue.run('a', first.run), queue.run('a', second.run)]
  first.fail(new Error('broken'))
  await assert.rejects(failing, /broken/)
  second.end('second')
  assert.equal(await following, 'second')
})

it('work is refused at once if the queue for its key is full, and accepted again when the queue has room', async () => {
  const queue = new OneAtATime(1)
  const [first, second, third] = [createWork(), createWork(), createWork()]
  const running = [queue.run('a', first.run), queue.run('a', second.run)]
  await assert.rejects(queue.run('a', third.run), TooManyWaitingError)
  first.end('')
  second.end('')
  await Promise.all(running)
  third.end('third')
  assert.equal(await queue.run('a', third.run), 'third')
})
