import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { nullable } from '../catalog/json.ts'
import type { Context } from '../context.ts'
import { takeForms } from '../http/request/form-body.ts'
import type { App } from '../http/request/typed-app.ts'
import { actorOf } from '../operator/actor.ts'
import { changeNotice, OperatorNotice, readNotice } from '../operator/operator-notice.ts'
import { announceSettings } from '../operator/upstream-settings.ts'

type NoticeDeps = Pick<Context, 'db' | 'redis' | 'settings'>

const Answer = Type.Object({ notice: nullable(OperatorNotice) })

/** The notice on the pages. Register it inside a guard. */
export async function operatorNoticeRoutes(app: App, deps: NoticeDeps): Promise<void> {
  const about = (summary: string) => ({ summary, tags: ['Operator'], response: { 200: Answer } })
  app.get('/v1/operator/notice', { schema: about('Read the notice that the pages show') }, async () => ({
    notice: (await readNotice(deps.redis)) ?? null,
  }))
  const set = { schema: { ...about('Show a notice on the pages until its end'), body: OperatorNotice } }
  app.put('/v1/operator/notice', set, async (request) => {
    await change(deps, request, request.body)
    return { notice: request.body }
  })
  app.delete('/v1/operator/notice', { schema: about('End the notice') }, async (request) => {
    await change(deps, request, undefined)
    return { notice: null }
  })
}

/** The form of the overview. Without a text, the notice is removed. */
const NoticeForm = Type.Object({
  text: Type.Optional(OperatorNotice.properties.text),
  until: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d$', description: 'UTC' })),
})

/** The overview's form changes the notice, like the command line does. */
export async function noticeFormRoute(app: App, deps: NoticeDeps): Promise<void> {
  takeForms(app)
  app.post('/notice', { schema: { body: NoticeForm } }, async (request, reply) => {
    const { text, until } = request.body
    const notice = text === undefined ? undefined : { text, until: `${until}:00Z` }
    await change(deps, request, notice)
    // The next page shows the result.
    await deps.settings.read()
    return reply.redirect('/', 303)
  })
}

async function change(
  { db, redis }: Pick<NoticeDeps, 'db' | 'redis'>,
  request: Pick<FastifyRequest, 'headers' | 'ip'>,
  notice: OperatorNotice | undefined,
): Promise<void> {
  await changeNotice({ db, redis }, notice, actorOf(request))
  await announceSettings(redis)
}
