import { readdir, readFile, readlink } from 'node:fs/promises'

/** The number of TCP connections from a process to each port. Works only on Linux. */
export async function connectionsOf(pid: number): Promise<(port: number | undefined) => number> {
  const remotePorts = await readRemotePorts(pid)
  const ports = (await readSockets(pid)).map((inode) => remotePorts.get(inode))
  return (port) => ports.filter((each) => each !== undefined && each === port).length
}

/** Inodes of the sockets that a process has. */
async function readSockets(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')))
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
}

/** The port at the other end of each TCP connection, by the inode of its socket. */
async function readRemotePorts(pid: number): Promise<Map<string, number>> {
  const ports = new Map<string, number>()
  for (const table of await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/${pid}/net/${name}`, 'utf8')))) {
    for (const line of table.split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/)
      const [, port = ''] = fields[2]?.split(':') ?? []
      if (fields[9] !== undefined) ports.set(fields[9], Number.parseInt(port, 16))
    }
  }
  return ports
}
