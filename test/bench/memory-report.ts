import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Loaded into the gateway's processes. On SIGUSR2 a process collects its garbage and sends its
 * parent the number of bytes that it holds. The rest of its resident memory is room that V8 keeps
 * for later.
 */
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.({ heldBytes: heapUsed + external })
})
