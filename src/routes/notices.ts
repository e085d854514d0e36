import Type from 'typebox'
import type { Context } from '../context.ts'
import { setTakesNotices, takesNotices } from '../db/users.ts'
import type { App } from '../http/request/typed-app.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const members = {
  byMail: Type.Boolean({
    description:
      'Whether you get a mail when 80 and 100 % of a month’s calls are used, and seven days and one day before a key expires; your email address must be verified',
  }),
}
const Notices = Type.Object(members, { title: 'Notices' })

/** Whether an account is mailed notices. */
export async function noticeRoutes(app: App, { db, ...context }: Context): Promise<void> {
  guardWithSession(app, { db, ...context })
  const read = {
    schema: {
      operationId: 'readNotices',
      summary: 'Whether you get notices by mail',
      tags: ['Accounts'],
      response: { 200: Notices },
    },
  }
  app.get('/v1/me/notices', read, async (request) => ({ byMail: await takesNotices(db, sessionOf(request).user.id) }))
  const set = {
    schema: {
      operationId: 'setNotices',
      summary: 'Switch notices by mail on or off',
      tags: ['Accounts'],
      body: Type.Object(members),
      response: { 200: Notices },
    },
  }
  app.put('/v1/me/notices', set, async (request) => {
    const { byMail } = request.body
    await setTakesNotices(db, sessionOf(request).user.id, byMail)
    return { byMail }
  })
}
