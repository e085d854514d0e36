# One image for every process; the command says which (see docker-compose.yml). Postgres and Redis run elsewhere.

ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The image brings Node, and the embedded Postgres is for `npm start` alone: both are optional packages.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
# A container's own network: what is published of it is decided where it is run.
# Freed buffers of large bodies go back to the system (glibc).
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
# Hashes of passwords take as many threads as there are cores; files and compression need others.
ENV UV_THREADPOOL_SIZE=16
ENV NODE_ENV=production HOST=0.0.0.0 OPS_HOST=0.0.0.0 METRICS_HOST=0.0.0.0 METRICS_PORT=9464
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY src src
COPY workers workers
COPY migrations migrations
# Owned by root and never written to, so the file system may be read-only.
USER node
EXPOSE 3000 3001 9464
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD \
  ["node", "-e", "fetch(`http://127.0.0.1:${process.env.METRICS_PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# The exec form: Node itself is process 1 and hears SIGTERM.
CMD ["node", "--no-incremental-marking-task", "src/server.ts"]
