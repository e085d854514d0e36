# Two images. `gateway`, the last target, is one image for every process. The command says which process (see
# docker-compose.yml), and Postgres and Redis run elsewhere. `all` is the whole service in one container, stores included:
#
#   docker build --target all --tag agent-api-gateway:all .
#   docker run --detach --restart unless-stopped --name agw -p 3000:3000 -p 127.0.0.1:3001:3001 -v agw:/data --stop-timeout 60 agent-api-gateway:all

ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The image brings Node, and the embedded Postgres is for `npm start` alone: both are optional packages.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE} AS all-dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# With the embedded Postgres, whose install script makes links. The image brings Node.
RUN npm ci --omit=dev --no-audit --no-fund && rm -rf node_modules/node-linux-* node_modules/.bin/node && chmod -R a+rX node_modules

FROM ${NODE_IMAGE} AS all
# Valkey, or Redis if the distribution of the base image has no Valkey yet. tini reaps processes that the stores leave behind and
# forwards signals.
RUN apt-get update && \
  apt-get install --yes --no-install-recommends tini && \
  (apt-get install --yes --no-install-recommends valkey-server || apt-get install --yes --no-install-recommends redis-server) && \
  rm -rf /var/lib/apt/lists/* && mkdir /data && chown node:node /data
ENV NODE_ENV=production HOST=0.0.0.0 OPS_HOST=0.0.0.0 METRICS_PORT=9464 DATA_DIR=/data INSTALL=no
WORKDIR /app
COPY --from=all-dependencies /app/node_modules node_modules
COPY package.json ./
COPY src src
COPY workers workers
COPY migrations migrations
# Owned by root and never written to, so the file system may be read-only; all data are in the volume.
USER node
VOLUME /data
EXPOSE 3000 3001
# /readyz of the first API node: the stores are in the same container, so an unreachable store is a failure of the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s CMD \
  ["node", "-e", "require('http').get(`http://127.0.0.1:${process.env.METRICS_PORT}/readyz`, (r) => process.exit(r.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "src/local/container.sh"]

FROM ${NODE_IMAGE} AS gateway
# The container's own network. Whoever runs the container decides which ports are published.
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
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s CMD \
  ["node", "-e", "require('http').get(`http://127.0.0.1:${process.env.METRICS_PORT}/healthz`, (r) => process.exit(r.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# The exec form: Node itself is process 1 and hears SIGTERM.
CMD ["node", "--no-incremental-marking-task", "src/server.ts"]
