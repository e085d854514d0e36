import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { type BatchAnswer, BatchLines, BatchObject } from '../../../src/http/answer/batch-answer.ts'

const CALLS = 50
const TOTALS = { done: true, ok: CALLS }

const large = Buffer.from(`"data":{"text":"${'x'.repeat(128 * 1024)}"}}`)
const small = Buffer.from('"data":{"text":"y"}}')

/** Lines of calls that all have the same answer. */
function writeAll(answer: BatchAnswer, body: Buffer): void {
  for (let index = 0; index < CALLS; index += 1) answer.write(index, [Buffer.from(`{"index":${index},`), body])
  answer.end(TOTALS)
}

describe('the answer to a batch', () => {
  for (const body of [large, small]) {
    it(`the answer to a batch holds a body of ${body.length} bytes that many calls share once while its caller does not read`, async () => {
      for (const answer of [new BatchLines(), new BatchObject(CALLS)]) {
        const before = process.memoryUsage().arrayBuffers
        writeAll(answer, body)
        const held = process.memoryUsage().arrayBuffers - before
        assert.ok(held < large.length, `${answer.constructor.name} holds ${held} bytes`)
        answer.stream.destroy()
      }
    })

    it(`the answer to a batch with bodies of ${body.length} bytes is one line for each call, or one object`, async () => {
      const expected = Array.from({ length: CALLS }, (_, index) => JSON.parse(`{"index":${index},${body}`))
      const [lines, object] = [new BatchLines(), new BatchObject(CALLS)]
      writeAll(lines, body)
      writeAll(object, body)
      const read = (await text(lines.stream)).trimEnd().split('\n')
      assert.deepEqual(
        read.map((line) => JSON.parse(line)),
        [...expected, TOTALS],
      )
      assert.deepEqual(JSON.parse(await text(object.stream)), { results: expected, ...TOTALS })
    })
  }

  it('no more lines are written to the answer to a batch whose caller has left', () => {
    const answer = new BatchLines()
    answer.stream.destroy()
    writeAll(answer, small)
    assert.equal(answer.stream.readableLength, 0)
  })
})
