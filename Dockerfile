# One image for all programs: `docker run … quipu start|coordinator|worker|query`.
FROM node:24.11.1-bookworm-slim AS build
WORKDIR /app
# The sources come first: `npm ci` runs `prepare`, which compiles and bundles them.
COPY package.json package-lock.json .npmrc tsconfig.json bundle.mjs ./
COPY src ./src
COPY console ./console
RUN npm ci && npm prune --omit=dev

FROM node:24.11.1-bookworm-slim
ENV NODE_ENV=production \
    QUIPU_HOST=0.0.0.0 \
    QUIPU_DATA_DIR=/var/lib/quipu \
    QUIPU_CATALOG_DIR=/app/etc/catalog \
    QUIPU_PUBLIC_HOSTS=localhost
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY migrations ./migrations
COPY etc ./etc
# A named volume takes over the owner of the folder it is mounted on.
RUN install -d -o node -g node -m 0711 /var/lib/quipu /var/lib/quipu-log /var/lib/quipu-tables && ln -s /app/dist/cli/quipu.js /usr/local/bin/quipu && chmod +x /app/dist/cli/quipu.js
# By number: a platform that insists on no root can check it.
USER 1000:1000
VOLUME /var/lib/quipu
EXPOSE 8080
ENTRYPOINT ["node", "/app/dist/cli/quipu.js"]
CMD ["start", "--insecure"]
