import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Loaded into the gateway's processes. On SIGUSR2 a process collects its garbage and tells its
 * parent how many bytes it holds. If its resident memory is larger, the rest is room that V8 keeps
 * for later.
 */
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.({ heldBytes: heapUsed + external })
})
