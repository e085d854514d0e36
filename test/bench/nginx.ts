import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../src/local/embedded/free-port.ts'

/** Whether nginx is installed. No proxy can cost less than nginx, which only passes requests on. */
export function hasNginx(): boolean {
  return spawnSync('nginx', ['-v']).status === 0
}

const START_TRIES = 100

/**
 * Starts an nginx with a single process, which passes everything on to the upstream and keeps its
 * connections alive.
 */
export async function startNginx(folder: string, upstreamUrl: string): Promise<{ child: ChildProcess; url: string }> {
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  await mkdir(join(folder, 'logs'), { recursive: true })
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 100000000;
  ${temporary.join('\n  ')}
  upstream u { server ${new URL(upstreamUrl).host}; keepalive 512; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://u; }
  }
}
`,
  )
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'], { stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}`
  for (let time = 0; time < START_TRIES; time += 1) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
    if (
      await fetch(url)
        .then((answer) => answer.ok)
        .catch(() => false)
    )
      return { child, url }
    await delay(50)
  }
  throw new Error('nginx does not answer')
}
