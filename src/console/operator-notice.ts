import Type from 'typebox'
import { nullable } from '../catalog/json.ts'
import type { Context } from '../context.ts'
import type { App } from '../http/request/typed-app.ts'
import { actorOf } from '../operator/actor.ts'
import { changeNotice, OperatorNotice, readNotice } from '../operator/operator-notice.ts'
import { announceSettings } from '../operator/upstream-settings.ts'

const Answer = Type.Object({ notice: nullable(OperatorNotice) })

/** What the pages tell everybody. Registered inside a guard, as all of the operator API. */
export async function operatorNoticeRoutes(app: App, { db, redis }: Pick<Context, 'db' | 'redis'>): Promise<void> {
  const about = (summary: string) => ({ summary, tags: ['Operator'], response: { 200: Answer } })
  app.get('/v1/operator/notice', { schema: about('Read the notice that the pages show') }, async () => ({
    notice: (await readNotice(redis)) ?? null,
  }))
  const set = { schema: { ...about('Show a notice on the pages until its end'), body: OperatorNotice } }
  app.put('/v1/operator/notice', set, async (request) => {
    await changeNotice({ db, redis }, request.body, actorOf(request))
    await announceSettings(redis)
    return { notice: request.body }
  })
  app.delete('/v1/operator/notice', { schema: about('End the notice') }, async (request) => {
    await changeNotice({ db, redis }, undefined, actorOf(request))
    await announceSettings(redis)
    return { notice: null }
  })
}
