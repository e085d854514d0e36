/**
 * Loaded into a process before its own code. The wall clock of the process takes the next step at
 * each SIGUSR2, as if its machine was resumed or its clock was set. `CLOCK_STEPS_MS` lists the
 * steps.
 */
const RealDate = Date
const steps = (process.env.CLOCK_STEPS_MS ?? '').split(',').map(Number)
let offsetMs = 0

class SteppedDate extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(RealDate.now() + offsetMs)
    else super(...(given as [number]))
  }

  static override now(): number {
    return RealDate.now() + offsetMs
  }
}

globalThis.Date = SteppedDate as DateConstructor
process.on('SIGUSR2', () => {
  offsetMs += steps.shift() ?? 0
})
