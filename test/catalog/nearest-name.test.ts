import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isWithin, lettersOf, mayBeWithin } from '../../src/catalog/nearest-name.ts'

/** Every word that one typing error makes of another, with letters of `with`. */
function misspelled(word: string, letters: string): string[] {
  const words: string[] = []
  for (let place = 0; place <= word.length; place += 1) {
    const [start, end] = [word.slice(0, place), word.slice(place)]
    words.push(start + end.slice(1), `${start}${end[1] ?? ''}${end[0] ?? ''}${end.slice(2)}`)
    for (const letter of letters) words.push(start + letter + end, start + letter + end.slice(1))
  }
  return words
}

describe('letters of words', () => {
  it('the comparison of letters never rules out a word within the allowed number of typing errors', () => {
    for (const word of ['weather', 'aabb', 'köln', '2026', '名前名前']) {
      for (const once of misspelled(word, 'axé9')) {
        assert.ok(mayBeWithin(1, lettersOf(word), lettersOf(once)), `${word} ${once}`)
        for (const twice of misspelled(once, 'q5')) {
          if (!isWithin(2, word, twice)) continue
          assert.ok(mayBeWithin(2, lettersOf(word), lettersOf(twice)), `${word} ${twice}`)
        }
      }
    }
  })

  it('the comparison of letters rules out words with more typing errors', () => {
    assert.equal(mayBeWithin(1, lettersOf('weather'), lettersOf('leather')), true)
    assert.equal(mayBeWithin(1, lettersOf('weather'), lettersOf('leader')), false)
    assert.equal(mayBeWithin(2, lettersOf('weather'), lettersOf('country')), false)
    assert.equal(mayBeWithin(0, lettersOf('weather'), lettersOf('wet')), false)
  })
})
