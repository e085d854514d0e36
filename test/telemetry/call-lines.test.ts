import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { CallLines } from '../../src/telemetry/call-lines.ts'

function createLog() {
  const lines: { members: Record<string, unknown>; message: string }[] = []
  const log = new CallLines({ info: (members, message) => void lines.push({ members: { ...members }, message }) })
  const end = (account: string | undefined, code: string, count = 1): void => {
    for (let made = 0; made < count; made += 1) {
      log.write({ account, code, message: 'call' }, () => ({ account, code }))
    }
  }
  return { log, lines, end }
}

it('the log has at most ten lines a second for the calls of an account with the same code, and then a line that counts the others by code', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const { lines, end } = createLog()
  end('a', 'API_NOT_FOUND', 15)
  end('a', '200', 3_000)
  end('b', 'API_NOT_FOUND')
  assert.equal(lines.length, 10 + 10 + 1)
  mock.timers.tick(1_000)
  assert.deepEqual(lines.slice(21), [
    {
      members: { account: 'a', calls: 2_995, codes: { 200: 2_990, API_NOT_FOUND: 5 } },
      message: 'further calls',
    },
  ])
  end('a', 'API_NOT_FOUND')
  assert.equal(lines.at(-1)?.message, 'call')
})

it('the log of calls is bounded over all accounts, and so are its counting lines', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const { lines, end } = createLog()
  for (let account = 0; account < 1_000; account += 1) end(`account ${account}`, 'API_NOT_FOUND', 12)
  assert.equal(lines.length, 200)
  mock.timers.tick(1_000)
  const surplus = lines.slice(200)
  assert.equal(surplus.length, 201)
  const counted = surplus.reduce((sum, { members }) => sum + Number(members.calls), 0)
  assert.equal(counted + 200, 12_000)
  assert.equal(surplus.at(-1)?.members.accounts, 800)
})

it('callers without an account share the lines of one account, and a log that closes says what is left', () => {
  const { log, lines, end } = createLog()
  end(undefined, 'INVALID_API_KEY', 25)
  log.close()
  assert.equal(lines.length, 11)
  assert.deepEqual(lines.at(-1)?.members, { account: undefined, calls: 15, codes: { INVALID_API_KEY: 15 } })
  log.close()
  assert.equal(lines.length, 11)
})
