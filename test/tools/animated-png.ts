import { crc32, deflateSync, inflateSync } from 'node:zlib'

/**
 * A picture of the recording: a PNG with 8 bits a channel and no alpha channel, as a browser makes
 * its screenshots.
 */
export interface Frame {
  png: Buffer
  /** How long the frame is shown, milliseconds. */
  forMs: number
}

interface Picture {
  width: number
  height: number
  /** Red, green and blue of each pixel, row by row. */
  pixels: Uint8Array
}

interface Area {
  left: number
  top: number
  width: number
  height: number
}

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const CHANNELS = 3

/**
 * Makes frames of equal size into an animated PNG that plays again and again (APNG 1.0). The first
 * frame is a whole picture. Each later frame has only the area in which it differs from the frame
 * before it.
 */
export function animate(frames: Frame[]): Buffer {
  const pictures = frames.map(({ png }) => decode(png))
  const [first] = pictures
  if (!first) throw new RangeError('a recording has frames')
  let sequence = 0
  const parts = pictures.flatMap((picture, index) => {
    const area = changed(pictures[index - 1], picture)
    const shown = [halves(frames[index]?.forMs ?? 0, 1_000), Buffer.from([0, 0])]
    const place = words(area.width, area.height, area.left, area.top)
    const control = chunk('fcTL', Buffer.concat([words(sequence++), place, ...shown]))
    const data = encode(picture, area)
    return [control, index === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([words(sequence++), data]))]
  })
  const header = Buffer.concat([words(first.width, first.height), Buffer.from([8, 2, 0, 0, 0])])
  const count = chunk('acTL', words(frames.length, 0))
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), count, ...parts, chunk('IEND', Buffer.alloc(0))])
}

/**
 * The smallest area that has all pixels that changed. If there is no picture before, the whole
 * picture.
 */
function changed(before: Picture | undefined, { width, height, pixels }: Picture): Area {
  if (!before) return { left: 0, top: 0, width, height }
  let [left, top, right, bottom] = [width, height, 0, 0]
  for (let at = 0; at < pixels.length; at += 1) {
    if (pixels[at] === before.pixels[at]) continue
    const pixel = Math.floor(at / CHANNELS)
    const [x, y] = [pixel % width, Math.floor(pixel / width)]
    left = Math.min(left, x)
    right = Math.max(right, x)
    top = Math.min(top, y)
    bottom = Math.max(bottom, y)
  }
  // If no pixel changed, the frame still needs an area of at least a single pixel.
  return left > right
    ? { left: 0, top: 0, width: 1, height: 1 }
    : { left, top, width: right - left + 1, height: bottom - top + 1 }
}

/**
 * The compressed rows of an area. Each row gets the filter that leaves the smallest differences
 * (PNG 1.2, 9.6).
 */
function encode({ width, pixels }: Picture, { left, top, width: columns, height: rows }: Area): Buffer {
  const length = columns * CHANNELS
  const lines: Uint8Array[] = []
  let above = new Uint8Array(length)
  for (let row = 0; row < rows; row += 1) {
    const start = ((top + row) * width + left) * CHANNELS
    const line = pixels.subarray(start, start + length)
    lines.push(smallest([0, 1, 2, 3, 4].map((filter) => filtered(filter, line, above))))
    above = line as Uint8Array<ArrayBuffer>
  }
  return deflateSync(Buffer.concat(lines), { level: 9, memLevel: 9 })
}

function filtered(filter: number, line: Uint8Array, above: Uint8Array): Uint8Array {
  const result = new Uint8Array(line.length + 1)
  result[0] = filter
  for (let at = 0; at < line.length; at += 1) result[at + 1] = (line[at] ?? 0) - predicted(filter, line, { above, at })
  return result
}

/**
 * The value that a filter predicts for a byte from its left neighbour, the byte above, and the byte
 * above the left neighbour.
 */
function predicted(filter: number, line: Uint8Array, { above, at }: { above: Uint8Array; at: number }): number {
  const before = at < CHANNELS ? 0 : (line[at - CHANNELS] ?? 0)
  const up = above[at] ?? 0
  const corner = at < CHANNELS ? 0 : (above[at - CHANNELS] ?? 0)
  if (filter === 0) return 0
  if (filter === 1) return before
  if (filter === 2) return up
  if (filter === 3) return (before + up) >> 1
  const estimate = before + up - corner
  const [byBefore, byUp, byCorner] = [before, up, corner].map((value) => Math.abs(estimate - value)) as [
    number,
    number,
    number,
  ]
  if (byBefore <= byUp && byBefore <= byCorner) return before
  return byUp <= byCorner ? up : corner
}

/** The row with the smallest sum of bytes, read as signed numbers without their sign. */
function smallest(candidates: Uint8Array[]): Uint8Array {
  const sum = (line: Uint8Array) => line.reduce((total, byte) => total + (byte < 128 ? byte : 256 - byte), 0)
  return candidates.reduce((best, line) => (sum(line) < sum(best) ? line : best))
}

/** @throws RangeError if the picture has other bits or channels */
function decode(png: Buffer): Picture {
  const [header] = chunksOf(png, 'IHDR')
  if (header?.readUInt16BE(8) !== 0x08_02) throw new RangeError('only pictures of 8 bits in RGB are read')
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const length = width * CHANNELS
  const rows = inflateSync(Buffer.concat(chunksOf(png, 'IDAT')))
  const pixels = new Uint8Array(length * height)
  let above = new Uint8Array(length)
  for (let row = 0; row < height; row += 1) {
    const start = row * (length + 1)
    const line = pixels.subarray(row * length, (row + 1) * length)
    for (let at = 0; at < length; at += 1)
      line[at] = (rows[start + 1 + at] ?? 0) + predicted(rows[start] ?? 0, line, { above, at })
    above = line
  }
  return { width, height, pixels }
}

function chunksOf(png: Buffer, wanted: string): Buffer[] {
  const found: Buffer[] = []
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === wanted) found.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  return found
}

/** One chunk of a PNG (RFC 2083, 3.2). */
function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  return Buffer.concat([words(data.length), body, words(crc32(body))])
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => {
    bytes.writeUInt32BE(value, index * 4)
  })
  return bytes
}

function halves(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, index) => {
    bytes.writeUInt16BE(value, index * 2)
  })
  return bytes
}
