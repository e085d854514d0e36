import { setTimeout as delay } from 'node:timers/promises'
import type { Api, Catalog } from '../catalog/catalog.ts'
import type { CallQueues } from '../queue/call-queue.ts'
import { IN_FORCE_MS, type SettingsSync } from './upstream-settings.ts'

export interface PauseDeps {
  catalog: Catalog
  queues: Pick<CallQueues, 'of'>
  settings: Pick<SettingsSync, 'read'>
}

/**
 * Makes the queue of an upstream hold its calls, or let them go, as the setting in Postgres says. Of several that do so
 * at once, because operators changed the setting one after the other, the last one reads the last setting: it holds in the end.
 *
 * @throws what Redis or Postgres throws; `repairHeldQueues` and `repairReleasedQueues` make good what was cut off
 */
export async function followPause({ queues, settings }: Omit<PauseDeps, 'catalog'>, api: Api): Promise<void> {
  const queue = queues.of(api.slug)
  for (;;) {
    const isHeld = api.pausedMode === 'hold'
    // Workers refuse what was accepted before its node knew of a pause, and what was held until now: they must know of it first.
    if (api.pausedMode === 'refuse') await delay(IN_FORCE_MS)
    await (isHeld ? queue.pause() : queue.resume())
    await settings.read()
    if ((api.pausedMode === 'hold') === isHeld) return
  }
}

/**
 * Pauses again the queues that should hold their calls and do not: Redis may have lost its data, or was away when an
 * operator paused. Without it calls would go to an upstream that is shown as paused.
 *
 * @throws what Redis or Postgres throws
 */
export async function repairHeldQueues(deps: PauseDeps): Promise<void> {
  await repairQueues(deps, true)
}

/**
 * Lets the queues go on that hold their calls and should not: a resumption was cut off after Postgres had it. Without it
 * accepted calls would wait until their deadlines at an upstream that is shown as not paused.
 *
 * @throws what Redis or Postgres throws
 */
export async function repairReleasedQueues(deps: PauseDeps): Promise<void> {
  await repairQueues(deps, false)
}

async function repairQueues(deps: PauseDeps, isHeld: boolean): Promise<void> {
  const { catalog, queues, settings } = deps
  const shouldBe = (api: Api): boolean => (api.pausedMode === 'hold') === isHeld
  for (const api of catalog.values()) {
    if (!shouldBe(api) || (await queues.of(api.slug).isPaused()) === isHeld) continue
    // What this process knows may be older than what an operator has just changed.
    await settings.read()
    if (shouldBe(api)) await followPause(deps, api)
  }
}
