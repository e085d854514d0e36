import { connect } from 'node:net'

/** An answer as it came over the socket. */
export interface RawAnswer {
  status: number
  /** By lower-case name. If a header occurs more than once, its last value. */
  headers: Record<string, string>
  body: string
  /** Everything received. */
  text: string
  /** Time until the connection was closed, milliseconds. */
  tookMs: number
}

/**
 * Writes bytes to a port and reads until the other side closes. It uses no HTTP library, because a
 * library would repair the bytes.
 */
export async function rawHttp(port: number, bytes: string | Buffer, timeoutMs = 10_000): Promise<RawAnswer> {
  const startedAt = performance.now()
  const text = await new Promise<string>((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    const timer = setTimeout(() => socket.destroy(new Error('the connection stayed open')), timeoutMs)
    const end = () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks).toString('utf8'))
    }
    socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
    socket.on('close', end)
    socket.on('error', (error) => {
      clearTimeout(timer)
      // The other side may reset the connection, with or without an answer before. Without, the
      // answer is empty.
      if (Reflect.get(error, 'code') === 'ECONNRESET') end()
      else reject(error)
    })
    socket.write(bytes)
  })
  return { ...parse(text), text, tookMs: performance.now() - startedAt }
}

function parse(text: string): Pick<RawAnswer, 'status' | 'headers' | 'body'> {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return { status: Number(first.split(' ')[1]), headers: Object.fromEntries(headers), body: rest.join('\r\n\r\n') }
}
