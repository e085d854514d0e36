import type { Claim } from '../soak/scenario.ts'
import type { Allowances } from './conservation.ts'
import type { CallRecord, LoadOptions } from './load.ts'
import type { Rig } from './rig.ts'

/** A fault, or a series of faults, under steady load. */
export interface ChaosScenario {
  name: string
  about: string
  /** Length of the load, seconds. */
  seconds: number
  perSecond: LoadOptions['perSecond']
  patienceMs?: number
  webNodes?: number
  workers?: number
  environment?: Record<string, string>
  /** If set, the stores' files lie on a disk of this size, MB, which the scenario can fill. */
  diskMb?: number
  /** True if the first processes are of the version before, whose checkout `--before` names. */
  isUpgrade?: boolean
  /** Makes the load. Default: a fixed number of calls a second. */
  offer?: (rig: Rig) => Promise<CallRecord[]>
  /** The share of callers with less patience than the others. */
  impatient?: LoadOptions['impatient']
  /** Runs beside the load, which goes on until its time is over. */
  faults: (rig: Rig) => Promise<void>
  allow: Allowances
  /** What this scenario claims beside the law of conservation. */
  claims?: (records: CallRecord[], rig: Rig) => Claim[] | Promise<Claim[]>
}

/** The usual load: calls a second of each flow. */
export const USUAL = { weather: 40, 'air-quality': 1 }
