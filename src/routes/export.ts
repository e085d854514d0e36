import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { toAllowedAnswer } from '../accounts/credential-limits.ts'
import { toKeyAnswer } from '../accounts/key-schema.ts'
import { toTeamAnswer } from '../accounts/team-schema.ts'
import type { Context } from '../context.ts'
import { EXPORTED_CALLS_MAX, readAccountRows, readCallPages, readUsagePages } from '../db/account-export.ts'
import type { User } from '../db/schema.ts'
import { findUser } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import type { App } from '../http/request/typed-app.ts'
import { HOUR_MS, makeThrottled, type Throttle } from '../throttles/throttle.ts'
import { checkSession, guardWithSession, type Session, sessionOf } from './session-guard.ts'

/** Exports of an account per hour. There are a few, because a download may break off. */
const EXPORTS_PER_HOUR = 3

const Rows = (description: string) => Type.Array(Type.Object({}, { additionalProperties: true }), { description })

const Export = Type.Object(
  {
    exportedAt: Type.String({ format: 'date-time', description: 'When the export began' }),
    profile: Type.Object({}, { additionalProperties: true, description: 'The account itself' }),
    sessions: Rows('Log-ins of the last 30 days'),
    identities: Rows('Your identities at the OIDC provider that lead to the account'),
    keys: Rows(
      'API keys that count against your plan, including keys that ended in the last 30 days; never a key itself',
    ),
    connections: Rows('Applications that signed in, including connections that ended in the last 30 days'),
    teams: Rows('Teams, and your role in each'),
    providerKeys: Rows('Keys of your own for APIs, masked'),
    usage: Rows('Calls that reached the queue, by day, key, API, status and mode'),
    refusals: Rows('Calls that were refused before the queue, counted in the same way'),
    calls: Rows(`The newest ${EXPORTED_CALLS_MAX} calls of the log; GET /v1/logs has the others`),
  },
  { title: 'AccountExport' },
)

/** Everything that the service stores about an account, for its owner. */
export async function exportRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  const options = {
    config: { errors: ['RATE_LIMIT_EXCEEDED'] as const },
    schema: {
      operationId: 'exportAccount',
      summary: 'Download the data that the service stores about your account',
      description: `One JSON object, at most ${EXPORTS_PER_HOUR} times an hour. It contains no secrets: no keys, hashes or passwords.`,
      tags: ['Accounts'],
      response: { 200: { content: { 'application/json': { schema: Export } } } },
    },
  }
  app.get('/v1/me/export', options, async (request, reply) => {
    const session = sessionOf(request)
    const { id } = session.user
    const throttle: Throttle = {
      name: 'export',
      subject: id,
      max: EXPORTS_PER_HOUR,
      windowMs: HOUR_MS,
      code: 'RATE_LIMIT_EXCEEDED',
      hint: 'Use an export that you have downloaded, or wait',
    }
    // A HEAD request gets no export.
    const counted: 'success'[] = request.method === 'HEAD' ? [] : ['success']
    const send = () => sendExport(reply as FastifyReply, context, session)
    return await makeThrottled(context, { throttles: [throttle], counted }, send)
  })
}

/**
 * The short lists are read first, so that a failure can still be answered. The usage may be long,
 * and is read as the client reads the answer, as long as the session lasts.
 */
async function sendExport(reply: FastifyReply, context: Context, session: Session): Promise<FastifyReply> {
  const { db, reportsDb } = context
  const userId = session.user.id
  const user = await findUser(db, userId)
  if (!user) throw new GatewayError('INVALID_TOKEN')
  const rows = await readAccountRows(db, userId)
  const short = {
    exportedAt: new Date().toISOString(),
    profile: profileOf(user),
    sessions: rows.sessions,
    identities: rows.identities,
    keys: rows.keys.map((key) => ({ ...toKeyAnswer(key), revokedAt: key.revoked_at })),
    connections: rows.connections.map((row) => ({
      id: row.id,
      clientId: row.client_id,
      clientName: row.client_name,
      redirectHost: row.redirect_host,
      resource: row.resource,
      ...toAllowedAnswer(row),
      createdAt: row.created_at,
      lastUsedAt: row.last_used_at,
      revokedAt: row.revoked_at,
    })),
    teams: rows.teams.map((team) => ({ ...toTeamAnswer(team), role: team.role })),
    providerKeys: rows.providerKeys.map((row) => ({
      apiSlug: row.slug,
      maskedKey: row.masked,
      status: row.status,
      savedAt: row.saved_at,
      lastValidatedAt: row.last_validated_at,
    })),
  }
  const text = async function* (): AsyncGenerator<string> {
    yield JSON.stringify(short).slice(0, -1)
    const parts: [name: string, pages: AsyncGenerator<object[]>][] = [
      ['usage', readUsagePages(reportsDb, 'usage_daily', userId)],
      ['refusals', readUsagePages(reportsDb, 'refusals_daily', userId)],
      ['calls', readCallPages(reportsDb, userId)],
    ]
    for (const [name, pages] of parts) {
      yield `,"${name}":[`
      let isFirst = true
      for await (const page of pages) {
        await checkSession(context, session)
        const lines = page.map((row) => JSON.stringify(row)).join(',\n')
        yield isFirst ? `\n${lines}` : `,\n${lines}`
        isFirst = false
      }
      yield ']'
    }
    yield '}\n'
  }
  return reply
    .header('content-disposition', 'attachment; filename="account.json"')
    .type('application/json; charset=utf-8')
    .send(Readable.from(text()))
}

function profileOf(user: User): object {
  return {
    id: user.id,
    email: user.email,
    hasPassword: user.password_hash !== null,
    tier: user.tier,
    createdAt: user.created_at,
    emailVerifiedAt: user.email_verified_at,
    approvedAt: user.approved_at,
    termsAcceptedAt: user.terms_accepted_at,
    signupNetwork: user.signup_network,
  }
}
