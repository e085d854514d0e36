import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

export interface MailServer {
  url: string
  /** Every mail as it came: envelope, header and text, soft line breaks joined. */
  mails: { to: string; text: string }[]
  close: () => Promise<void>
}

/** A mail server that takes everything and delivers nothing. */
export async function startMailServer(): Promise<MailServer> {
  const mails: MailServer['mails'] = []
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
        to = /^RCPT TO:<(.*)>/i.exec(line)?.[1] ?? to
        isData = /^DATA/i.test(line)
        socket.write(isData ? '354 go on\r\n' : '250 test\r\n')
      }
    })
  })
  await once(server.listen(0, '127.0.0.1').unref(), 'listening')
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}?ignoreTLS=true`,
    mails,
    close: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}
