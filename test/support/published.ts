import { Redis } from 'ioredis'

const END = 'the end'

/**
 * Runs `act`, and returns the messages that were published on a channel meanwhile, in order and
 * without a gap.
 */
export async function publishedDuring(url: string, channel: string, act: () => Promise<unknown>): Promise<string[]> {
  const [listener, publisher] = [new Redis(url), new Redis(url)]
  try {
    const messages: string[] = []
    const end = new Promise<void>((resolve) => {
      listener.on('message', (_channel, message) => {
        if (message === END) resolve()
        else messages.push(message)
      })
    })
    await listener.subscribe(channel)
    await act()
    // Redis delivers in the order of publication.
    await publisher.publish(channel, END)
    await end
    return messages
  } finally {
    listener.disconnect()
    publisher.disconnect()
  }
}
