import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

export interface MailServer {
  url: string
  /** Every mail with its recipient, and its header and text with soft line breaks joined. */
  mails: { to: string; text: string }[]
  /** The server's reply to each recipient. A test may change it. */
  recipientAnswer: string
  close: () => Promise<void>
}

/**
 * A mail server that accepts every mail and delivers none. If a test sets another reply, it sends
 * that reply.
 */
export async function startMailServer(): Promise<MailServer> {
  const mails: MailServer['mails'] = []
  const mail: MailServer = { url: '', mails, recipientAnswer: '250 test', close }
  const server = createServer((socket) => {
    let to = ''
    let buffer = ''
    let isData = false
    socket.on('error', () => undefined)
    socket.write('220 test\r\n')
    socket.on('data', (bytes) => {
      buffer += bytes.toString('utf8')
      for (;;) {
        const end = buffer.indexOf(isData ? '\r\n.\r\n' : '\r\n')
        if (end < 0) return
        const line = buffer.slice(0, end)
        buffer = buffer.slice(end + (isData ? 5 : 2))
        if (isData) {
          mails.push({ to, text: line.replaceAll('=\r\n', '').replaceAll('=3D', '=') })
          isData = false
          socket.write('250 taken\r\n')
          continue
        }
        const recipient = /^RCPT TO:<(.*)>/i.exec(line)?.[1]
        to = recipient ?? to
        isData = /^DATA/i.test(line)
        const answer = recipient === undefined ? '250 test' : mail.recipientAnswer
        socket.write(isData ? '354 go on\r\n' : `${answer}\r\n`)
      }
    })
  })
  await once(server.listen(0, '127.0.0.1').unref(), 'listening')
  mail.url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}?ignoreTLS=true`
  return mail

  async function close(): Promise<void> {
    server.close()
    await once(server, 'close')
  }
}
