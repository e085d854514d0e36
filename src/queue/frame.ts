const HEAD_LENGTH_BYTES = 4

/**
 * Makes a frame: the length of the head, the head as JSON, and the body. The bytes of the body are
 * neither parsed nor escaped on their way.
 */
export function encodeFrame(head: object, body: Buffer): Buffer {
  const text = JSON.stringify(head)
  const headLength = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(HEAD_LENGTH_BYTES + headLength + body.length)
  frame.writeUInt32BE(headLength)
  frame.write(text, HEAD_LENGTH_BYTES)
  body.copy(frame, HEAD_LENGTH_BYTES + headLength)
  return frame
}

/** @throws Error if it is no frame */
export function decodeFrame<Head>(frame: Buffer): { head: Head; body: Buffer } {
  const end = HEAD_LENGTH_BYTES + frame.readUInt32BE()
  return { head: JSON.parse(frame.toString('utf8', HEAD_LENGTH_BYTES, end)), body: frame.subarray(end) }
}
