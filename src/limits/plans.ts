import type { Tier } from '../catalog/upstream.ts'
import type { PlanName } from '../config.ts'

export const TIERS: readonly Tier[] = ['developer', 'pro', 'business', 'enterprise']

const PLAN_OF_TIER: Record<Tier, PlanName> = {
  developer: 'Free',
  pro: 'Pro',
  business: 'Elite',
  enterprise: 'Elite (contract)',
}

export function planOf(tier: Tier): PlanName {
  return PLAN_OF_TIER[tier]
}

export function isTierAtLeast(tier: Tier, required: Tier): boolean {
  return TIERS.indexOf(tier) >= TIERS.indexOf(required)
}

/** Each weight must divide `COST` of caps/scripts.ts, because tags have no fractions. */
const WEIGHT_OF_TIER: Record<Tier, number> = { developer: 1, pro: 2, business: 4, enterprise: 8 }

/** Weight with which an account shares an upstream's cap while other accounts have demand. */
export function weightOf(tier: Tier): number {
  return WEIGHT_OF_TIER[tier]
}
