import assert from 'node:assert/strict'
import { it } from 'node:test'
import { textTable } from '../../src/operator/text-table.ts'

const heads = ['When', 'Who', 'What', 'Change']
const row = ['2026-11-23 09:07', 'operator (127.0.0.1)', 'user.update', 'tier developer → enterprise, '.repeat(6)]

it('a table fits the terminal: the widest columns are cut, but never columns that would be useless when cut', () => {
  const lines = textTable(heads, [row], { whole: ['When'], widthMax: 80 }).split('\n')
  for (const line of lines) assert.ok(line.length <= 80, line)
  assert.match(lines[1] ?? '', /^2026-11-23 09:07 {2}operator.*…$/)
})

it('a table is whole if no terminal shows it, or if the terminal does not know its width', (t) => {
  const known = Object.getOwnPropertyDescriptor(process.stdout, 'columns')
  t.after(() => {
    if (known) Object.defineProperty(process.stdout, 'columns', known)
    else Reflect.deleteProperty(process.stdout, 'columns')
  })
  for (const columns of [undefined, 0]) {
    Object.defineProperty(process.stdout, 'columns', { value: columns, configurable: true })
    const [, line = ''] = textTable(heads, [row], { whole: [] }).split('\n')
    assert.equal(line, row.join('  ').trimEnd())
  }
})
