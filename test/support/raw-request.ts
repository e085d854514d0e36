import { once } from 'node:events'
import { connect } from 'node:net'

/** An answer with the bytes that the server sent. */
export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/**
 * Sends bytes unchanged over a socket of its own, because an HTTP library would repair them, and
 * reads the answer.
 *
 * @throws Error if the server ends the connection without an answer
 */
export async function sendRaw(url: string, bytes: string | Buffer | (string | Buffer)[]): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const received: Buffer[] = []
  const timer = setTimeout(() => socket.destroy(new Error('no answer in 20 s')), 20_000)
  try {
    await once(socket, 'connect')
    // The server may answer and close before all is sent.
    socket.on('error', () => undefined)
    const ended = once(socket, 'close')
    for (const part of [bytes].flat()) socket.write(typeof part === 'string' ? Buffer.from(part, 'utf8') : part)
    const answered = new Promise<void>((resolve) => {
      socket.on('data', (chunk) => {
        received.push(chunk)
        if (isComplete(Buffer.concat(received))) resolve()
      })
    })
    await Promise.race([answered, ended])
    return parse(Buffer.concat(received))
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

export interface RawRequest {
  method: string
  path: string
  headers?: Record<string, string>
  body?: string | Buffer
}

/** The bytes of an ordinary request. */
export function rawRequest({ method, path, headers = {}, body }: RawRequest): Buffer {
  const bytes = Buffer.from(body ?? '')
  const all: Record<string, string> = { Host: 'localhost', ...headers }
  if (body !== undefined && all['Content-Length'] === undefined) all['Content-Length'] = String(bytes.length)
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes])
}

function isComplete(bytes: Buffer): boolean {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return false
  const { headers } = parseHead(bytes.subarray(0, end).toString('latin1'))
  return headers['content-length'] !== undefined && bytes.length >= end + 4 + Number(headers['content-length'])
}

function parse(bytes: Buffer): RawAnswer {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) throw new Error(`the connection ended without an answer: ${bytes.toString().slice(0, 200)}`)
  return { ...parseHead(bytes.subarray(0, end).toString('latin1')), body: bytes.subarray(end + 4).toString() }
}

function parseHead(head: string): Pick<RawAnswer, 'status' | 'headers'> {
  const [first = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  return { status: Number(first.split(' ')[1]), headers }
}
