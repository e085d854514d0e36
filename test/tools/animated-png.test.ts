import assert from 'node:assert/strict'
import { it } from 'node:test'
import { crc32, deflateSync, inflateSync } from 'node:zlib'
import { animate } from './animated-png.ts'

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** Four by three white pixels, of which a single pixel has another colour. */
function picture(x: number, y: number, colour: number[]): Buffer {
  const rows = Buffer.alloc((4 * 3 + 1) * 3, 255)
  for (let row = 0; row < 3; row += 1) rows[row * 13] = 0
  Buffer.from(colour).copy(rows, y * 13 + 1 + x * 3)
  const header = Buffer.from([0, 0, 0, 4, 0, 0, 0, 3, 8, 2, 0, 0, 0])
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(name: string, data: Buffer): Buffer {
  const framed = Buffer.alloc(data.length + 12)
  framed.writeUInt32BE(data.length)
  framed.write(name, 4, 'latin1')
  data.copy(framed, 8)
  framed.writeUInt32BE(crc32(framed.subarray(4, data.length + 8)), data.length + 8)
  return framed
}

it('a frame of a recording has only the area that changed since the frame before it', () => {
  const recording = animate([
    { png: picture(1, 1, [10, 20, 30]), forMs: 500 },
    { png: picture(2, 2, [40, 50, 60]), forMs: 1_500 },
  ])
  const control = recording.lastIndexOf('fcTL') + 4
  const place = [0, 1, 2, 3, 4].map((word) => recording.readUInt32BE(control + word * 4))
  assert.deepEqual(place, [1, 2, 2, 1, 1], 'the second chunk in order, two by two pixels, from the pixel at 1, 1')
  assert.equal(recording.readUInt16BE(control + 20), 1_500)
  const data = recording.indexOf('fdAT')
  const rows = inflateSync(recording.subarray(data + 8, data + 4 + recording.readUInt32BE(data - 4)))
  assert.equal(rows.length, 2 * (2 * 3 + 1), 'two rows of a filter and two pixels')
})
