import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCommandLine } from '../../src/operator/command-line.ts'

test('a command of the operator has its subject and its options', () => {
  const { command, subject, values } = readCommandLine(['account', 'a@example.com', '--disable', '--json']) ?? {}
  assert.deepEqual([command, subject, values?.disable, values?.json], ['account', 'a@example.com', true, true])
  assert.equal(readCommandLine(['status'])?.subject, undefined)
  for (const args of [[], ['help'], ['pause', '--help']]) assert.equal(readCommandLine(args), undefined)
})

test('a command of the operator refuses arguments that it would not use', () => {
  for (const [args, words] of [
    [
      'account a@example.com b@example.com --disable',
      /: Nothing was done: account accepts one argument, not "b@example\.com";/,
    ],
    ['pause weather back in an hour', /pause accepts one argument, not "back in an hour";/],
    ['resume weather extra', /not "extra"/],
    ['status weather', /: Nothing was done: status accepts no argument, not "weather";/],
    ['pause weather --tier pro', /: Nothing was done: pause has no option --tier;/],
    ['upstream weather --hold', /upstream has no option --hold/],
    ['account a@example.com --approve --disapprove', /: Nothing was done: --approve and --disapprove cannot be used/],
    ['upstream weather --disable --enable', /--enable and --disable cannot be used together/],
    ['notice --end --until 2026-12-01T06:00:00Z', /--end and --until cannot be used together/],
    ['constructor', /: There is no command constructor/],
  ] as const) {
    assert.throws(() => readCommandLine(args.split(' ')), words)
  }
})

test('user and users of the command line are account and accounts, as the operator API calls them', () => {
  assert.equal(readCommandLine(['user', 'a@example.com'])?.command, 'account')
  assert.equal(readCommandLine(['users', '--unapproved'])?.command, 'accounts')
})
