import Type from 'typebox'
import type { Context } from '../context.ts'
import type { App } from '../http/request/typed-app.ts'
import { readMonthUsage } from '../limits/month-usage.ts'
import { PLAN_OF_TIER } from '../limits/plans.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const BillingStatus = Type.Object(
  {
    tier: Type.Enum(['developer', 'pro', 'business', 'enterprise'], { description: 'Tier of the account' }),
    plan: Type.String({ description: 'Name of the plan' }),
    limits: Type.Object(
      {
        perMinute: Type.Integer({ description: 'Calls in any minute' }),
        perMonth: Type.Integer({ description: 'Calls in a UTC month' }),
        inFlight: Type.Integer({ description: 'Calls at once' }),
      },
      { description: 'Limits of the plan' },
    ),
    usage: Type.Object(
      {
        month: Type.String({ description: 'UTC month, YYYY-MM' }),
        used: Type.Integer({ description: 'Calls that counted this month' }),
        remaining: Type.Integer({ minimum: 0, description: 'Calls left this month' }),
        resetsAt: Type.String({ format: 'date-time', description: 'When the month ends' }),
      },
      { description: 'Calls of this month' },
    ),
  },
  { title: 'BillingStatus' },
)

/** The plan of the account, its limits, and the usage of this month. */
export async function billingRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  const status = {
    schema: {
      summary: 'Your plan, its limits and how much of them is used',
      tags: ['Billing'],
      response: { 200: BillingStatus },
    },
  }
  app.get('/v1/billing/status', status, async (request) => {
    const { id, tier } = sessionOf(request).user
    const plan = PLAN_OF_TIER[tier]
    const limits = context.config.plans[plan]
    const { month, used, resetsAt } = await readMonthUsage(context, id)
    const remaining = Math.max(0, limits.perMonth - used)
    return { tier, plan, limits, usage: { month, used, remaining, resetsAt: resetsAt.toISOString() } }
  })
}
