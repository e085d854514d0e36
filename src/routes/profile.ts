import Type from 'typebox'
import type { Context } from '../context.ts'
import type { App } from '../http/typed-app.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const Profile = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the account' }),
    email: Type.String({ description: 'Address of the account' }),
    tier: Type.String({ description: 'Tier of the account' }),
    termsAcceptedAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When the terms of the service were accepted; null: not recorded',
    }),
  },
  { title: 'User' },
)

/** Who is logged in. */
export async function profileRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  const me = {
    schema: { summary: 'Your profile', tags: ['Accounts'], response: { 200: Profile } },
  }
  app.get('/v1/me', me, async (request) => {
    const { id, email, tier, terms_accepted_at } = sessionOf(request).user
    return { id, email, tier, termsAcceptedAt: terms_accepted_at?.toISOString() ?? null }
  })
}
