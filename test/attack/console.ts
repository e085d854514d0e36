import { once } from 'node:events'
import { connect } from 'node:net'
import type { Outcome, Scenario } from './scenario.ts'

/** Wrong tokens that the attack sends before the right token. */
const GUESSES = 60

/** What others on the same network can do to the operator. */
export const operatorConsole: Scenario = {
  name: 'console',
  claim:
    'a log-out ends the session, wrong guesses do not lock the operator out, and the public address has no console',
  run: async (gateway): Promise<Outcome> => {
    const { message } = await gateway.startProcess('src/ops.ts', { HOST: '0.0.0.0', OPS_PORT: '0' })
    const url = `http://127.0.0.1:${(message as { listening: number }).listening}`
    const token = gateway.environment['OPERATOR_TOKEN'] ?? ''
    const users = (headers: Record<string, string>) => fetch(`${url}/v1/operator/users`, { headers })
    const cookie = await logIn(url, token)
    const during = (await users({ cookie })).status
    await fetch(`${url}/logout`, { method: 'POST', headers: { cookie, origin: url }, redirect: 'manual' })
    const after = (await users({ cookie })).status
    for (let index = 0; index < GUESSES; index += 1) await users({ authorization: `Bearer ${'x'.repeat(43)}` })
    const right = (await users({ authorization: `Bearer ${token}` })).status
    const isOpenOutside = await connects(Number(new URL(url).port))
    return {
      isPassed: during === 200 && after === 401 && right === 200 && !isOpenOutside,
      figures: {
        'with the cookie': during,
        'after the log-out': after,
        [`right token after ${GUESSES} wrong ones`]: right,
        'on another address': isOpenOutside ? 'open' : 'closed',
      },
    }
  },
}

async function logIn(url: string, token: string): Promise<string> {
  const response = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { origin: url },
    body: new URLSearchParams({ token }),
    redirect: 'manual',
  })
  return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

/** Whether the console listens on another address of this machine than 127.0.0.1. */
async function connects(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.2')
  try {
    return await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)])
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
