import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneLine } from '../../src/accounts/foreign-text.ts'

test('a text of a stranger becomes one line of sixty characters without characters that hide, reorder or overlay other characters', () => {
  for (const [text, shown] of [
    ['Claude', 'Claude'],
    ['  Claude\r\n\tCode ', 'Claude Code'],
    ['a\u2028b\u2029c\u0085d\u000be', 'a b c d e'],
    ['evil\u202egpj.exe\u202c', 'evilgpj.exe'],
    ['\u2066a\u2069\u200f\u061cb', 'ab'],
    ['a\u200bb\u200dc\ufeffd\u00ade\u2060f', 'abcdef'],
    ['a\u3164\u115f\u2800b\u034fc', 'abc'],
    ['a\u{e0041}\u{e0042}\ue000\ud800b', 'ab'],
    [`z${'\u0301'.repeat(50)}`, `\u017a${'\u0301'.repeat(2)}`],
    ['Gęś日本語 🦆', 'Gęś日本語 🦆'],
    ['\u202e', ''],
  ] as const)
    assert.equal(oneLine(text), shown, JSON.stringify(text))
  assert.equal([...oneLine('🦆'.repeat(200))].length, 60)
  assert.equal(oneLine('x'.repeat(60)), 'x'.repeat(60))
  assert.equal(oneLine('x'.repeat(61)), `${'x'.repeat(59)}…`)
  assert.equal(oneLine(oneLine('x y '.repeat(50))), oneLine('x y '.repeat(50)))
})
