import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/** One command as MONITOR shows it. */
export interface MonitoredCommand {
  /** In lower case. */
  name: string
  /** True if a script ran the command; false if it came over the wire. */
  isOfScript: boolean
  /** The whole line. */
  text: string
}

/**
 * Calls `onCommand` with every command that a Redis runs, until it is closed. It uses a socket of
 * its own, because ioredis can take the first shown command for the reply to its MONITOR.
 */
export async function openMonitor(
  redisUrl: string,
  onCommand: (command: MonitoredCommand) => void,
): Promise<{ close: () => void }> {
  const { hostname, port, username, password } = new URL(redisUrl)
  const socket = connect(Number(port || 6379), hostname)
  await once(socket, 'connect')
  const lines = createInterface({ input: socket })
  const isOpen = new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    lines.on('line', (text) => {
      const [, source, name = ''] = /^\+\d+\.\d+ \[\d+ (\S+)\] "(\w+)"/.exec(text) ?? []
      if (source !== undefined) onCommand({ name: name.toLowerCase(), isOfScript: source === 'lua', text })
      else if (text.startsWith('-')) reject(new Error(text))
      // If there is a password, the first answer is the answer to AUTH. The answer to MONITOR comes
      // before every command shown.
      else resolve()
    })
  })
  const login = password === '' ? '' : `AUTH ${username || 'default'} ${password}\r\n`
  socket.write(`${login}MONITOR\r\n`)
  await isOpen
  return { close: () => socket.destroy() }
}
