import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BOUNDS, COLUMNS_MAX, countByFolder, RULES, type Rule, rateOf, readProse } from './language.ts'

/** Adds the counts of these folders. */
function total(folders: string[]) {
  const counts = [...countByFolder(readProse(folders)).values()]
  const uses = { if: 0, where: 0, one: 0, thoseOf: 0 }
  for (const rule of Object.keys(RULES) as Rule[]) {
    for (const count of counts) uses[rule] += count.uses[rule]
  }
  const sum = (read: (count: (typeof counts)[number]) => number) => counts.reduce((all, count) => all + read(count), 0)
  return { words: sum(({ words }) => words), long: sum(({ long }) => long), uses }
}

describe('the language of comments and pages', () => {
  it('conditions begin with if and nouns are repeated: node test/tools/language.ts --lines names every place', () => {
    for (const folders of [['src', 'workers'], ['test']]) {
      const count = total(folders)
      for (const rule of Object.keys(RULES) as Rule[]) {
        const { min = 0, max = Number.POSITIVE_INFINITY } = BOUNDS[rule]
        const rate = rateOf(count, rule)
        const words = `${folders.join(', ')}: ${rule}: ${rate.toFixed(2)} uses in 1,000 words (${min} to ${max})`
        assert.ok(rate >= min && rate <= max, words)
      }
    }
  })

  it(`no line of a comment is longer than ${COLUMNS_MAX} characters`, () => {
    const long = readProse(['src', 'workers', 'test']).flatMap(({ file, lines }) =>
      lines.filter(({ length }) => length > COLUMNS_MAX).map(({ number }) => `${file}:${number}`),
    )
    assert.deepEqual(long, [])
  })

  it('a tag of a docstring begins its line, so that no reader takes it for a part of the sentence', () => {
    const within = readProse(['src', 'workers', 'test']).flatMap(({ file, lines }) =>
      lines.filter(({ text }) => /\S\s@(?:returns|param|throws)\b/.test(text)).map(({ number }) => `${file}:${number}`),
    )
    assert.deepEqual(within, [])
  })

  it('the counter tells a condition from a place, and a pronoun from a number', () => {
    const uses = (rule: Rule, text: string) => text.match(RULES[rule])?.length ?? 0
    assert.equal(uses('where', 'Undefined where it is not there.'), 1)
    assert.equal(uses('where', 'Where Redis is away, the call fails.'), 1)
    assert.equal(uses('where', 'Where a request goes.'), 0)
    assert.equal(uses('where', 'It says where the file is.'), 0)
    assert.equal(uses('one', 'A key, or another one.'), 1)
    assert.equal(uses('one', 'The one that has most.'), 1)
    assert.equal(uses('one', 'Requests that one worker sent in one minute.'), 0)
    assert.equal(uses('thoseOf', 'Keys, and those of teams.'), 1)
    assert.equal(uses('thoseOf', 'Keys, and those that have ended.'), 1)
  })
})
