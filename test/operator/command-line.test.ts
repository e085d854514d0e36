import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCommandLine } from '../../src/operator/command-line.ts'

test('a command of the operator has its subject and its options', () => {
  const { command, subject, values } = readCommandLine(['user', 'a@example.com', '--disable', '--json']) ?? {}
  assert.deepEqual([command, subject, values?.disable, values?.json], ['user', 'a@example.com', true, true])
  assert.equal(readCommandLine(['status'])?.subject, undefined)
  for (const args of [[], ['help'], ['pause', '--help']]) assert.equal(readCommandLine(args), undefined)
})

test('a command of the operator refuses arguments that it would not use', () => {
  for (const [args, words] of [
    [
      'user a@example.com b@example.com --disable',
      /: Nothing was done: user takes one argument, not "b@example\.com";/,
    ],
    ['pause weather back in an hour', /pause takes one argument, not "back in an hour";/],
    ['resume weather extra', /not "extra"/],
    ['status weather', /: Nothing was done: status takes no argument, not "weather";/],
    ['pause weather --tier pro', /: Nothing was done: pause takes no option --tier;/],
    ['upstream weather --hold', /upstream takes no option --hold/],
    ['constructor', /: There is no command constructor/],
  ] as const) {
    assert.throws(() => readCommandLine(args.split(' ')), words)
  }
})
